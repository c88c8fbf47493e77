/** The few shapes of the host that we use. Its plugin interface is experimental and has no stable types to import, so these
 * are written by hand, loosely: whatever may be missing there is optional here. */
export {};
