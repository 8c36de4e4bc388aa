/// Placeholder so that the room compiles before its walls stand.
