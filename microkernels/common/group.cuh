// Warps, blocks and groups of threads: barriers, shuffles, votes. Blocks are one-dimensional, their size a multiple of the warp.
// PTX ISA, "shfl.sync", "vote.sync", "bar"; AMD CDNA2 ISA, "ds_bpermute_b32", "ds_swizzle_b32", "DPP".
//
// A hardware operation (ACU_MK) has one signature and three readers: a device compiler (ACU_NATIVE), the emulation library (ACU_PLAIN: what it does to a
// warp, in plain C++) and emitted text under emulation, which sees the declaration only. Everything else is one text for all three.

ACU_DEVICE int lane_id() { return (int)(threadIdx.x % ACU_WARP); }
/// The same in all lanes, which the compiler is told where it makes a difference.
ACU_DEVICE int warp_id() {
#if ACU_NATIVE && defined(ACU_HIP)
    return __builtin_amdgcn_readfirstlane((int)(threadIdx.x / ACU_WARP));
#else
    return (int)(threadIdx.x / ACU_WARP);
#endif
}

#if ACU_PLAIN
inline unsigned long long whole_warp() { return emu::warp_width() == 64 ? ~0ull : 0xffffffffull; }
#endif

// ---- barriers

/// All threads of the block; orders shared and global memory among them.
ACU_MK void block_barrier()
#if ACU_NATIVE
{
    __syncthreads();
}
#elif ACU_PLAIN
{
    emu::block_barrier_at(EMU_SITE);
}
#else
;
#endif

/// All lanes of the warp; orders memory among them.
ACU_MK void warp_barrier()
#if ACU_NATIVE && defined(ACU_HIP)
{
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");  // LDS serves a wave in order: what must not reorder is the compiler
    __builtin_amdgcn_wave_barrier();
}
#elif ACU_NATIVE
{
    __syncwarp();
}
#elif ACU_PLAIN
{
    emu::warp_sync_at(whole_warp(), EMU_SITE);
}
#else
;
#endif

#ifndef ACU_HIP
/// `threads` threads of the block (a multiple of 32, whole warps) meet at barrier `id`: 1 to 15, since 0 is `block_barrier`.
ACU_MK void group_barrier(int id, int threads)
#if ACU_NATIVE
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
#elif ACU_PLAIN
{
    emu::named_barrier(id, threads, true, EMU_SITE);
}
#else
;
#endif

/// The address in the shared window of the block that PTX operands of `.shared` take.
ACU_MK unsigned shared_address(const void* p)
#if ACU_NATIVE
{
    return (unsigned)__cvta_generic_to_shared(p);
}
#elif ACU_PLAIN
{
    return emu::to_shared(p);
}
#else
;
#endif
#endif

// ---- shuffles of one word. All lanes take part, with the same mask or distance.

#if ACU_PLAIN
/// Every lane receives the word of lane `source`; its own where there is no such lane.
inline unsigned exchange_words(const char* operation, unsigned x, int source, const void* site) {
    struct Lane {
        unsigned sent, received;
        int source;
    } me{x, x, source};
    emu::warp_meet(operation, whole_warp(), &me, [](void* const* lanes) {
        for (int l = 0; l < emu::warp_width(); ++l) {
            Lane* const to = static_cast<Lane*>(lanes[l]);
            const bool inside = to && to->source >= 0 && to->source < emu::warp_width();
            const Lane* const from = inside ? static_cast<Lane*>(lanes[to->source]) : to;
            if (to) to->received = from ? from->sent : 0x7fc0deadu;  // of a lane that is not there: undefined
        }
    }, site);
    return me.received;
}
#endif

ACU_MK unsigned shuffle_word(unsigned x, int lane)
#if ACU_NATIVE && defined(ACU_HIP)
{
    return (unsigned)__builtin_amdgcn_ds_bpermute(lane << 2, (int)x);
}
#elif ACU_NATIVE
{
    return __shfl_sync(0xffffffffu, x, lane);
}
#elif ACU_PLAIN
{
    return exchange_words("shuffle", x, lane & (emu::warp_width() - 1), EMU_SITE);
}
#else
;
#endif

ACU_MK unsigned shuffle_word_xor(unsigned x, int mask)
#if ACU_NATIVE && defined(ACU_HIP)
{
    switch (mask) {  // a constant after unrolling: lanes that lie near need no address
        case 1: return (unsigned)__builtin_amdgcn_update_dpp((int)x, (int)x, 0xb1, 0xf, 0xf, false);   // quad_perm:[1,0,3,2]
        case 2: return (unsigned)__builtin_amdgcn_update_dpp((int)x, (int)x, 0x4e, 0xf, 0xf, false);   // quad_perm:[2,3,0,1]
        case 4: return (unsigned)__builtin_amdgcn_ds_swizzle((int)x, 0x101f);
        case 8: return (unsigned)__builtin_amdgcn_update_dpp((int)x, (int)x, 0x128, 0xf, 0xf, false);  // row_ror:8
        case 16: return (unsigned)__builtin_amdgcn_ds_swizzle((int)x, 0x401f);
        default: return (unsigned)__builtin_amdgcn_ds_bpermute((lane_id() ^ mask) << 2, (int)x);
    }
}
#elif ACU_NATIVE
{
    return __shfl_xor_sync(0xffffffffu, x, mask);
}
#elif ACU_PLAIN
{
    return exchange_words("shuffle xor", x, emu::lane() ^ mask, EMU_SITE);
}
#else
;
#endif

ACU_MK unsigned shuffle_word_up(unsigned x, int distance)
#if ACU_NATIVE && defined(ACU_HIP)
{
    const int lane = lane_id();
    return (unsigned)__builtin_amdgcn_ds_bpermute((lane < distance ? lane : lane - distance) << 2, (int)x);
}
#elif ACU_NATIVE
{
    return __shfl_up_sync(0xffffffffu, x, distance);
}
#elif ACU_PLAIN
{
    return exchange_words("shuffle up", x, emu::lane() - distance, EMU_SITE);
}
#else
;
#endif

ACU_MK unsigned shuffle_word_down(unsigned x, int distance)
#if ACU_NATIVE && defined(ACU_HIP)
{
    const int lane = lane_id();
    return (unsigned)__builtin_amdgcn_ds_bpermute((lane + distance < ACU_WARP ? lane + distance : lane) << 2, (int)x);
}
#elif ACU_NATIVE
{
    return __shfl_down_sync(0xffffffffu, x, distance);
}
#elif ACU_PLAIN
{
    return exchange_words("shuffle down", x, emu::lane() + distance, EMU_SITE);
}
#else
;
#endif

// ---- shuffles of values of up to 8 bytes

/// A value as words; the last one is filled up with zeros.
template <class T>
struct Words {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    unsigned word[(sizeof(T) + 3) / 4];
    ACU_DEVICE explicit Words(T x) : word{} { memcpy(word, &x, sizeof(T)); }
    ACU_DEVICE T value() const {
        T x;
        memcpy(&x, word, sizeof(T));
        return x;
    }
};

/// What lane `lane` (modulo the warp) has.
template <class T>
ACU_DEVICE T warp_shuffle(T x, int lane) {
    Words<T> w(x);
    for (unsigned& u : w.word) u = shuffle_word(u, lane);
    return w.value();
}
template <class T>
ACU_DEVICE T warp_shuffle_xor(T x, int mask) {
    Words<T> w(x);
    for (unsigned& u : w.word) u = shuffle_word_xor(u, mask);
    return w.value();
}
/// What the lane `distance` below has; the lowest lanes keep their own.
template <class T>
ACU_DEVICE T warp_shuffle_up(T x, int distance) {
    Words<T> w(x);
    for (unsigned& u : w.word) u = shuffle_word_up(u, distance);
    return w.value();
}
template <class T>
ACU_DEVICE T warp_shuffle_down(T x, int distance) {
    Words<T> w(x);
    for (unsigned& u : w.word) u = shuffle_word_down(u, distance);
    return w.value();
}

// ---- votes

/// Bit l is the condition of lane l.
ACU_MK unsigned long long warp_ballot(bool condition)
#if ACU_NATIVE && defined(ACU_HIP)
{
    return __ballot(condition);
}
#elif ACU_NATIVE
{
    return __ballot_sync(0xffffffffu, condition);
}
#elif ACU_PLAIN
{
    struct Lane {
        bool condition;
        unsigned long long votes;
    } me{condition, 0};
    emu::warp_meet("ballot", whole_warp(), &me, [](void* const* lanes) {
        unsigned long long votes = 0;
        for (int l = 0; l < emu::warp_width(); ++l)
            if (lanes[l]) votes |= (unsigned long long)static_cast<Lane*>(lanes[l])->condition << l;
        for (int l = 0; l < emu::warp_width(); ++l)
            if (lanes[l]) static_cast<Lane*>(lanes[l])->votes = votes;
    }, EMU_SITE);
    return me.votes;
}
#else
;
#endif

ACU_DEVICE bool warp_any(bool condition) {
#if ACU_NATIVE && !defined(ACU_HIP)
    return __any_sync(0xffffffffu, condition) != 0;
#else
    return warp_ballot(condition) != 0;
#endif
}
ACU_DEVICE bool warp_all(bool condition) {
#if ACU_NATIVE && !defined(ACU_HIP)
    return __all_sync(0xffffffffu, condition) != 0;
#else
    return warp_ballot(!condition) == 0;
#endif
}
