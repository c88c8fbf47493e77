"""Tests on the real, pinned OpenClaw: one gateway a file, a scripted model, a real provider."""
