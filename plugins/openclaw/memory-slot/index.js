// The plugin beside this folder is built; this one is the same code under another manifest.
export { default } from "../dist/memory-slot.js";
