// Two floats rounded to nearest in one word, the first one low: as matrix instructions take factors of 16 bits from registers.
// PTX ISA, "cvt", .f16x2 and .bf16x2.

template <class T>
struct Pair;
template <>
struct Pair<f16> {
    ACU_DEVICE static unsigned of(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        unsigned word;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
        return word;
#else
        return (unsigned)to_f16(low).bits | (unsigned)to_f16(high).bits << 16;
#endif
    }
};
template <>
struct Pair<bf16> {
    ACU_DEVICE static unsigned of(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        unsigned word;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
        return word;
#else
        return (unsigned)to_bf16(low).bits | (unsigned)to_bf16(high).bits << 16;
#endif
    }
};
