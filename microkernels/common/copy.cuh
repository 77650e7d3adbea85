// Vector copies between memory (global or shared) and registers: one instruction for 2, 4, 8 or 16 bytes. The address is a multiple of that.
// PTX ISA, "ld", "st" (.v2, .v4); AMD CDNA2 ISA, "global_load_dwordx4", "ds_read_b128".

struct alignas(2) Pack2 { unsigned short word; };
struct alignas(4) Pack4 { unsigned word; };
struct alignas(8) Pack8 { unsigned word[2]; };
struct alignas(16) Pack16 { unsigned word[4]; };

template <int Bytes>
struct PackOf;
template <>
struct PackOf<2> { typedef Pack2 Type; };
template <>
struct PackOf<4> { typedef Pack4 Type; };
template <>
struct PackOf<8> { typedef Pack8 Type; };
template <>
struct PackOf<16> { typedef Pack16 Type; };

// Emulation checks the whole access at once: a compiler may split the copy of a struct, and then nobody would see its alignment.
#if ACU_NATIVE
template <class Pack>
ACU_DEVICE void load_pack(Pack& to, const void* from) { to = *static_cast<const Pack*>(from); }
template <class Pack>
ACU_DEVICE void store_pack(void* to, const Pack& from) { *static_cast<Pack*>(to) = from; }
#else
ACU_MK void load_bytes(void* to, const void* from, int bytes)
#if ACU_PLAIN
{
    emu::access(from, (unsigned)bytes, false, EMU_SITE);
    memcpy(to, from, (size_t)bytes);
}
#else
;
#endif
ACU_MK void store_bytes(void* to, const void* from, int bytes)
#if ACU_PLAIN
{
    emu::access(to, (unsigned)bytes, true, EMU_SITE);
    memcpy(to, from, (size_t)bytes);
}
#else
;
#endif
template <class Pack>
ACU_DEVICE void load_pack(Pack& to, const void* from) { load_bytes(&to, from, (int)sizeof(Pack)); }
template <class Pack>
ACU_DEVICE void store_pack(void* to, const Pack& from) { store_bytes(to, &from, (int)sizeof(Pack)); }
#endif

/// N elements, N * sizeof(T) bytes in all, from `src`, which is a multiple of that many bytes.
template <int N, class T>
ACU_DEVICE void load_vector(T (&dst)[N], const T* src) {
    typename PackOf<N * (int)sizeof(T)>::Type pack;
    load_pack(pack, src);
    memcpy(dst, &pack, N * sizeof(T));
}
/// N elements to `dst`, which is a multiple of N * sizeof(T) bytes.
template <int N, class T>
ACU_DEVICE void store_vector(T* dst, const T (&src)[N]) {
    typename PackOf<N * (int)sizeof(T)>::Type pack;
    memcpy(&pack, src, N * sizeof(T));
    store_pack(dst, pack);
}
