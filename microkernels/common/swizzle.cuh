// Lines of shared memory whose 16-byte chunks are permuted against bank conflicts.

/// Where element `at` of a shared buffer stands whose 16-byte chunks are permuted within rows of `Pattern` bytes (32, 64, 128): the chunk's number is xor-ed with bits of the
/// address above it. PTX ISA, "Shared memory layout and swizzling"; the buffer starts at a multiple of 1024 bytes. `Rows` lines of 128 bytes are permuted alike.
template <int Pattern, int Size, int Rows = 1>
ACU_DEVICE int swizzled(int at) {
    const int byte = at * Size, mask = Pattern / 16 - 1;
    return (byte ^ (((byte / (128 * Rows)) & mask) << 4)) / Size;
}
