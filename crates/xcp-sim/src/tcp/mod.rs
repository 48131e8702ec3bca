//! TCP as real stacks do it, packet by packet.
