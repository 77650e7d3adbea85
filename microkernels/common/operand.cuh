// Tiles of matrix operands in shared memory, as matrix instructions read them: which element stands where.
// PTX ISA, "Shared memory layout and swizzling".

/// `Lines` lines of `Pitch` neighbours. Along lines runs k where `Deep`, else the rows or columns of the product. `Swizzle`: bytes of the pattern that permutes chunks of 16 bytes, 0: none; `Alike` lines
/// of 128 bytes are permuted alike. `Panels`: lines longer than the pattern are cut into panels of that width, one after another.
template <class T, bool Deep, int Lines, int Pitch, int Swizzle = 0, int Alike = 1, bool Panels = false>
struct Operand {
    typedef T Element;
    static constexpr bool deep = Deep;
    static constexpr int lines = Lines, pitch = Pitch, swizzle = Swizzle, wide = Swizzle ? Swizzle / (int)sizeof(T) : Pitch;
    static constexpr bool panels = Panels && wide < Pitch;

    /// Of the element at `along` (row or column) and `k`, from the first one of the tile, which stands at a multiple of 1024 bytes where there is a swizzle.
    ACU_DEVICE static int offset(int along, int k) {
        const int line = Deep ? along : k, at = Deep ? k : along;
        const int plain = panels ? at / wide * (Lines * wide) + line * wide + at % wide : line * Pitch + at;
        return Swizzle ? swizzled<Swizzle ? Swizzle : 128, (int)sizeof(T), Alike>(plain) : plain;
    }
};
