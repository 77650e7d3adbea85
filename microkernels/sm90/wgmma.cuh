// Products of tiles in shared memory by warpgroups: wgmma m64nNk16 (f16, bf16), k8 (tf32), k32 (s8, e4m3, e5m2). sm_90a.
// PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions", "Matrix Descriptor Format", "Strides".

/// Where an operand lies: address and byte offsets in units of 16, swizzle mode.
ACU_DEVICE unsigned long long matrix_descriptor(unsigned address, int leading, int stride, int mode) {
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16 | (unsigned long long)(stride >> 4) << 32 | (unsigned long long)mode << 62;
}

/// Before the first product into registers, and where threads touched them since.
ACU_MK void warpgroup_fence()
#if ACU_NATIVE
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
#elif ACU_PLAIN
{
    emu::wgmma_fence();
}
#else
;
#endif
/// Closes a group: the products since the last one.
ACU_MK void warpgroup_commit()
#if ACU_NATIVE
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
#elif ACU_PLAIN
{
    emu::wgmma_commit(EMU_SITE);
}
#else
;
#endif
// Template parameters of what follows are arguments of the plain bodies.
#if ACU_NATIVE
template <int Pending>
ACU_DEVICE void warpgroup_wait_groups() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory"); }
#else
ACU_MK void warpgroup_wait_for(int pending)
#if ACU_PLAIN
{
    emu::wgmma_wait(pending, EMU_SITE);
}
#else
;
#endif
template <int Pending>
ACU_DEVICE void warpgroup_wait_groups() { warpgroup_wait_for(Pending); }
#endif
/// Until at most the `Pending` newest groups are on their way. With 0, the registers `d` may be read then: no read of them moves above this.
template <int Pending, class Sum, int R>
ACU_DEVICE void warpgroup_wait(Sum (&d)[R]) {
    warpgroup_wait_groups<Pending>();
#if ACU_NATIVE
#pragma unroll
    for (int i = 0; i < (Pending ? 0 : R); ++i) {
        if constexpr ((Sum)0.5f != 0) asm volatile("" : "+f"(d[i])::"memory");
        else asm volatile("" : "+r"(d[i])::"memory");
    }
#else
    (void)d;
#endif
}

#if ACU_PLAIN
/// How an operand lies, by its descriptor and `kind`: bits 0-2 its type, 3 of a: k does not run along lines, 4 the same of b.
struct WgmmaElements {
    static int bytes(int type) { return type == 2 ? 4 : type >= 3 ? 1 : 2; }
    static int depth(int type) { return 32 / bytes(type); }
    static unsigned at(unsigned long long operand, int type, bool across, int along, int k) {
        const unsigned start = (unsigned)(operand & 0x3fff) << 4, leading = (unsigned)(operand >> 16 & 0x3fff) << 4, stride = (unsigned)(operand >> 32 & 0x3fff) << 4, mode = (unsigned)(operand >> 62), size = (unsigned)bytes(type);
        const unsigned line = mode ? 256u >> mode : 16u, chunk = 16 / size;
        unsigned address;
        if (!across && mode) address = start + along % 8 * line + along / 8 * stride + k * size;
        else if (!across) address = start + along % 8 * 16 + along / 8 * stride + k % chunk * size + k / chunk * leading;
        else if (mode) address = start + along % (line / size) * size + along / (line / size) * leading + k % 8 * line + k / 8 * stride;
        else address = start + along % chunk * size + along / chunk * stride + k % 8 * 16 + k / 8 * leading;
        return address ^ (address >> 3 & (line - 16));
    }
    static float value(const unsigned char* p, int type) {
        unsigned short half;
        memcpy(&half, p, bytes(type) == 1 ? 1 : 2);
        unsigned word;
        switch (type) {
            case 0: return widen(f16{half});
            case 1: return widen(bf16{half});
            case 2: memcpy(&word, p, 4); return float_of(word & 0xffffe000u);
            case 3: return (float)(signed char)*p;
            case 4: return widen(f8e4m3{*p});
            default: return widen(f8e5m2{*p});
        }
    }
    static void spans(const emu::WgmmaOp& op, emu::Span* out, int* n) {
        const int type = op.type & 7;
        for (int side = 0; side < 2; ++side) {
            const bool across = op.type >> (3 + side) & 1;
            const int count = side ? op.n : 64, size = bytes(type), chunk = 16 / size;
            for (int along = 0; along < count; along += across ? chunk : 1)
                for (int k = 0; k < depth(type); k += across ? 1 : chunk) out[(*n)++] = {at(side ? op.b : op.a, type, across, along, k), 16};
        }
    }
    template <class Sum>
    static void add(const emu::WgmmaOp& op, int warp, const unsigned char* shared, float* const* d) {
        const int type = op.type & 7, deep = depth(type);
        static float x[16][32], y[32][256];
        for (int k = 0; k < deep; ++k) {
            for (int r = 0; r < 16; ++r) x[r][k] = value(shared + at(op.a, type, op.type >> 3 & 1, 16 * warp + r, k), type);
            for (int c = 0; c < op.n; ++c) y[k][c] = value(shared + at(op.b, type, op.type >> 4 & 1, c, k), type);
        }
        for (int l = 0; l < 32; ++l)
            for (int i = 0; i < op.n / 2; ++i) {
                const int row = l / 4 + 8 * (i / 2 % 2), column = 8 * (i / 4) + 2 * (l % 4) + i % 2;
                Sum sum = 0, old;
                for (int k = 0; k < deep; ++k) sum += (Sum)(x[row][k] * y[k][column]);
                memcpy(&old, &d[l][i], 4);
                sum += op.scale_d ? old : (Sum)0;
                memcpy(&d[l][i], &sum, 4);
            }
    }
    static void tile(const emu::WgmmaOp& op, int warp, const unsigned char* shared, float* const* d) {
        if ((op.type & 7) == 3) add<int>(op, warp, shared, d);
        else add<float>(op, warp, shared, d);
    }
};
#endif

#if !ACU_NATIVE
/// One instruction: d, of n / 2 registers, += a b; with bit 5 of `kind`, = a b.
ACU_MK void warpgroup_product(float* d, int n, int kind, unsigned long long a, unsigned long long b)
#if ACU_PLAIN
{
    emu::wgmma_issue(d, emu::WgmmaOp{a, b, n, !(kind >> 5 & 1), kind & 31}, &WgmmaElements::spans, &WgmmaElements::tile, EMU_SITE);
}
#else
;
#endif
#endif

/// By the type of the operands: elements of k of one instruction, and its number in descriptions of plain bodies.
template <class T>
struct WgmmaOf;
template <>
struct WgmmaOf<f16> { static constexpr int depth = 16, type = 0; };
template <>
struct WgmmaOf<bf16> { static constexpr int depth = 16, type = 1; };
template <>
struct WgmmaOf<float> { static constexpr int depth = 8, type = 2; };
template <>
struct WgmmaOf<i8> { static constexpr int depth = 32, type = 3; };
template <>
struct WgmmaOf<f8e4m3> { static constexpr int depth = 32, type = 4; };
template <>
struct WgmmaOf<f8e5m2> { static constexpr int depth = 32, type = 5; };

/// d += a b for 8 N columns, or d = a b where `Fresh`; `across`: neighbours in memory do not lie along k.
template <class T, int N, bool AcrossA, bool AcrossB>
struct Wgmma;

#if ACU_NATIVE
#define ACU_R4(i) ACU_D(d[i]), ACU_D(d[i + 1]), ACU_D(d[i + 2]), ACU_D(d[i + 3])
#define ACU_L4 "%0,%1,%2,%3"
#define ACU_O4 ACU_R4(0)
#define ACU_L8 ACU_L4 ",%4,%5,%6,%7"
#define ACU_O8 ACU_O4, ACU_R4(4)
#define ACU_L12 ACU_L8 ",%8,%9,%10,%11"
#define ACU_O12 ACU_O8, ACU_R4(8)
#define ACU_L16 ACU_L12 ",%12,%13,%14,%15"
#define ACU_O16 ACU_O12, ACU_R4(12)
#define ACU_L20 ACU_L16 ",%16,%17,%18,%19"
#define ACU_O20 ACU_O16, ACU_R4(16)
#define ACU_L24 ACU_L20 ",%20,%21,%22,%23"
#define ACU_O24 ACU_O20, ACU_R4(20)
#define ACU_L28 ACU_L24 ",%24,%25,%26,%27"
#define ACU_O28 ACU_O24, ACU_R4(24)
#define ACU_L32 ACU_L28 ",%28,%29,%30,%31"
#define ACU_O32 ACU_O28, ACU_R4(28)
#define ACU_L36 ACU_L32 ",%32,%33,%34,%35"
#define ACU_O36 ACU_O32, ACU_R4(32)
#define ACU_L40 ACU_L36 ",%36,%37,%38,%39"
#define ACU_O40 ACU_O36, ACU_R4(36)
#define ACU_L44 ACU_L40 ",%40,%41,%42,%43"
#define ACU_O44 ACU_O40, ACU_R4(40)
#define ACU_L48 ACU_L44 ",%44,%45,%46,%47"
#define ACU_O48 ACU_O44, ACU_R4(44)
#define ACU_L52 ACU_L48 ",%48,%49,%50,%51"
#define ACU_O52 ACU_O48, ACU_R4(48)
#define ACU_L56 ACU_L52 ",%52,%53,%54,%55"
#define ACU_O56 ACU_O52, ACU_R4(52)
#define ACU_L60 ACU_L56 ",%56,%57,%58,%59"
#define ACU_O60 ACU_O56, ACU_R4(56)
#define ACU_L64 ACU_L60 ",%60,%61,%62,%63"
#define ACU_O64 ACU_O60, ACU_R4(60)
#define ACU_L68 ACU_L64 ",%64,%65,%66,%67"
#define ACU_O68 ACU_O64, ACU_R4(64)
#define ACU_L72 ACU_L68 ",%68,%69,%70,%71"
#define ACU_O72 ACU_O68, ACU_R4(68)
#define ACU_L76 ACU_L72 ",%72,%73,%74,%75"
#define ACU_O76 ACU_O72, ACU_R4(72)
#define ACU_L80 ACU_L76 ",%76,%77,%78,%79"
#define ACU_O80 ACU_O76, ACU_R4(76)
#define ACU_L84 ACU_L80 ",%80,%81,%82,%83"
#define ACU_O84 ACU_O80, ACU_R4(80)
#define ACU_L88 ACU_L84 ",%84,%85,%86,%87"
#define ACU_O88 ACU_O84, ACU_R4(84)
#define ACU_L92 ACU_L88 ",%88,%89,%90,%91"
#define ACU_O92 ACU_O88, ACU_R4(88)
#define ACU_L96 ACU_L92 ",%92,%93,%94,%95"
#define ACU_O96 ACU_O92, ACU_R4(92)
#define ACU_L100 ACU_L96 ",%96,%97,%98,%99"
#define ACU_O100 ACU_O96, ACU_R4(96)
#define ACU_L104 ACU_L100 ",%100,%101,%102,%103"
#define ACU_O104 ACU_O100, ACU_R4(100)
#define ACU_L108 ACU_L104 ",%104,%105,%106,%107"
#define ACU_O108 ACU_O104, ACU_R4(104)
#define ACU_L112 ACU_L108 ",%108,%109,%110,%111"
#define ACU_O112 ACU_O108, ACU_R4(108)
#define ACU_L116 ACU_L112 ",%112,%113,%114,%115"
#define ACU_O116 ACU_O112, ACU_R4(112)
#define ACU_L120 ACU_L116 ",%116,%117,%118,%119"
#define ACU_O120 ACU_O116, ACU_R4(116)
#define ACU_L124 ACU_L120 ",%120,%121,%122,%123"
#define ACU_O124 ACU_O120, ACU_R4(120)
#define ACU_L128 ACU_L124 ",%124,%125,%126,%127"
#define ACU_O128 ACU_O124, ACU_R4(124)
#define ACU_WGMMA_SUM(z) "{\n.reg .pred p;\n.reg .b32 sums;\nmov.b32 sums, " z ";\nsetp.ne.b32 p, sums, 0;\nwgmma.mma_async.sync.aligned.m64n"
// Floats of 16 bits may lie across; others are multiplied along lines only. `a`, `b`, `x`, `y`, `z`: numbers of the operands behind the registers.
#define ACU_WGMMA16(T, name, n, r, a, b, x, y, z)                                                                                                                              \
    template <bool AcrossA, bool AcrossB>                                                                                                                                   \
    struct Wgmma<T, n / 8, AcrossA, AcrossB> {                                                                                                                              \
        template <bool Fresh>                                                                                                                                               \
        ACU_DEVICE static void run(float (&d)[r], unsigned long long from, unsigned long long with) {                                                                        \
            asm volatile(ACU_WGMMA_SUM(z) #n "k16.f32." name "." name " {" ACU_L##r "}, " a ", " b ", p, 1, 1, " x ", " y ";\n}" : ACU_O##r : "l"(from), "l"(with), "n"((int)AcrossA), "n"((int)AcrossB), "n"((int)!Fresh)); \
        }                                                                                                                                                                   \
    };
#define ACU_WGMMA(T, Sum, shape, n, r, a, b, z)                                                                                                                                \
    template <>                                                                                                                                                             \
    struct Wgmma<T, n / 8, false, false> {                                                                                                                                  \
        template <bool Fresh>                                                                                                                                               \
        ACU_DEVICE static void run(Sum (&d)[r], unsigned long long from, unsigned long long with) {                                                                          \
            asm volatile(ACU_WGMMA_SUM(z) #n shape " {" ACU_L##r "}, " a ", " b ", p" ACU_SCALES ";\n}" : ACU_O##r : "l"(from), "l"(with), "n"((int)!Fresh));                                     \
        }                                                                                                                                                                   \
    };
#define ACU_D(x) "+f"(x)
#define ACU_SCALES ", 1, 1"
#define ACU_WGMMAS(n, r, a, b, x, y, z)                            \
    ACU_WGMMA16(f16, "f16", n, r, a, b, x, y, z)                   \
    ACU_WGMMA16(bf16, "bf16", n, r, a, b, x, y, z)                 \
    ACU_WGMMA(float, float, "k8.f32.tf32.tf32", n, r, a, b, x)     \
    ACU_WGMMA(f8e4m3, float, "k32.f32.e4m3.e4m3", n, r, a, b, x)   \
    ACU_WGMMA(f8e5m2, float, "k32.f32.e5m2.e5m2", n, r, a, b, x)
ACU_WGMMAS(8, 4, "%4", "%5", "%6", "%7", "%8")
ACU_WGMMAS(16, 8, "%8", "%9", "%10", "%11", "%12")
ACU_WGMMAS(24, 12, "%12", "%13", "%14", "%15", "%16")
ACU_WGMMAS(32, 16, "%16", "%17", "%18", "%19", "%20")
ACU_WGMMAS(40, 20, "%20", "%21", "%22", "%23", "%24")
ACU_WGMMAS(48, 24, "%24", "%25", "%26", "%27", "%28")
ACU_WGMMAS(56, 28, "%28", "%29", "%30", "%31", "%32")
ACU_WGMMAS(64, 32, "%32", "%33", "%34", "%35", "%36")
ACU_WGMMAS(72, 36, "%36", "%37", "%38", "%39", "%40")
ACU_WGMMAS(80, 40, "%40", "%41", "%42", "%43", "%44")
ACU_WGMMAS(88, 44, "%44", "%45", "%46", "%47", "%48")
ACU_WGMMAS(96, 48, "%48", "%49", "%50", "%51", "%52")
ACU_WGMMAS(104, 52, "%52", "%53", "%54", "%55", "%56")
ACU_WGMMAS(112, 56, "%56", "%57", "%58", "%59", "%60")
ACU_WGMMAS(120, 60, "%60", "%61", "%62", "%63", "%64")
ACU_WGMMAS(128, 64, "%64", "%65", "%66", "%67", "%68")
ACU_WGMMAS(136, 68, "%68", "%69", "%70", "%71", "%72")
ACU_WGMMAS(144, 72, "%72", "%73", "%74", "%75", "%76")
ACU_WGMMAS(152, 76, "%76", "%77", "%78", "%79", "%80")
ACU_WGMMAS(160, 80, "%80", "%81", "%82", "%83", "%84")
ACU_WGMMAS(168, 84, "%84", "%85", "%86", "%87", "%88")
ACU_WGMMAS(176, 88, "%88", "%89", "%90", "%91", "%92")
ACU_WGMMAS(184, 92, "%92", "%93", "%94", "%95", "%96")
ACU_WGMMAS(192, 96, "%96", "%97", "%98", "%99", "%100")
ACU_WGMMAS(200, 100, "%100", "%101", "%102", "%103", "%104")
ACU_WGMMAS(208, 104, "%104", "%105", "%106", "%107", "%108")
ACU_WGMMAS(216, 108, "%108", "%109", "%110", "%111", "%112")
ACU_WGMMAS(224, 112, "%112", "%113", "%114", "%115", "%116")
ACU_WGMMAS(232, 116, "%116", "%117", "%118", "%119", "%120")
ACU_WGMMAS(240, 120, "%120", "%121", "%122", "%123", "%124")
ACU_WGMMAS(248, 124, "%124", "%125", "%126", "%127", "%128")
ACU_WGMMAS(256, 128, "%128", "%129", "%130", "%131", "%132")
#undef ACU_D
#undef ACU_SCALES
#define ACU_D(x) "+r"(x)
#define ACU_SCALES ""
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 8, 4, "%4", "%5", "%6")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 16, 8, "%8", "%9", "%10")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 24, 12, "%12", "%13", "%14")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 32, 16, "%16", "%17", "%18")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 48, 24, "%24", "%25", "%26")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 64, 32, "%32", "%33", "%34")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 80, 40, "%40", "%41", "%42")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 96, 48, "%48", "%49", "%50")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 112, 56, "%56", "%57", "%58")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 128, 64, "%64", "%65", "%66")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 144, 72, "%72", "%73", "%74")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 160, 80, "%80", "%81", "%82")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 176, 88, "%88", "%89", "%90")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 192, 96, "%96", "%97", "%98")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 208, 104, "%104", "%105", "%106")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 224, 112, "%112", "%113", "%114")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 240, 120, "%120", "%121", "%122")
ACU_WGMMA(i8, int, "k32.s32.s8.s8", 256, 128, "%128", "%129", "%130")
#undef ACU_D
#undef ACU_SCALES
#else
template <class T, int N, bool AcrossA, bool AcrossB>
struct Wgmma {
    template <bool Fresh, class Sum>
    ACU_DEVICE static void run(Sum (&d)[4 * N], unsigned long long from, unsigned long long with) {
        warpgroup_product(reinterpret_cast<float*>(d), 8 * N, WgmmaOf<T>::type | (int)AcrossA << 3 | (int)AcrossB << 4 | (int)Fresh << 5, from, with);
    }
};
#endif

/// Bytes from the start of an operand to what it has from `along` (row or column) and `k` on. Its lines are as long as its swizzle pattern, or in panels of that.
template <class O>
ACU_DEVICE int start_of(int along, int k) {
    constexpr int size = (int)sizeof(typename O::Element), line = O::swizzle;
    static_assert(line > 0 && O::pitch * size % line == 0 && (O::panels || O::pitch * size == line), "lines as long as the swizzle pattern");
    const int across = O::deep ? along : k, at = O::deep ? k : along;
    return (at / O::wide * O::lines + across) * line + at % O::wide * size;
}
/// Of the part of an operand that starts `start` bytes behind its first.
template <class O>
ACU_DEVICE unsigned long long descriptor_of(const typename O::Element* tile, int start) {
    constexpr int line = O::swizzle;
    return matrix_descriptor(shared_address(tile) + (unsigned)start, O::deep ? 16 : O::lines * line, 8 * line, line == 128 ? 1 : line == 64 ? 2 : 3);
}

/// d += a b: warpgroup w has 64 MI rows from 64 MI (w / Columns) on, and 8 NI columns from 8 NI (w % Columns) on; at most `Pending` such products stay on their way. Registers of d: those of an m64n8
/// fragment, then the NI, then the MI. `Fresh`: d = a b, whatever d was.
template <class A, class B, int MI, int NI, int K, int Columns, int Pending = 0, bool Fresh = false, class Sum>
ACU_DEVICE void warpgroup_tile(Sum (&d)[MI * NI * 4], const typename A::Element* a, const typename B::Element* b, int thread) {
    typedef typename A::Element T;
    constexpr int depth = WgmmaOf<T>::depth;
    static_assert(K % depth == 0 && NI <= 32, "a tile is made of whole instructions");
    const int group = warp_shuffle(thread / 128, 0), row = group / Columns * (64 * MI), column = group % Columns * (8 * NI);
    const unsigned long long from = descriptor_of<A>(a, start_of<A>(row, 0)), with = descriptor_of<B>(b, start_of<B>(column, 0));    // the rest of the addresses are constants
    warpgroup_fence();
#pragma unroll
    for (int k = 0; k < K; k += depth)
#pragma unroll
        for (int i = 0; i < MI; ++i) {
            typedef Wgmma<T, NI, !A::deep, !B::deep> Instruction;
            Sum(&sums)[NI * 4] = *reinterpret_cast<Sum(*)[NI * 4]>(&d[i * NI * 4]);
            const unsigned long long x = from + (unsigned)(start_of<A>(64 * i, k) >> 4), y = with + (unsigned)(start_of<B>(0, k) >> 4);
            if (Fresh && k == 0) Instruction::template run<true>(sums, x, y);
            else Instruction::template run<false>(sums, x, y);
        }
    warpgroup_commit();
    warpgroup_wait<Pending>(d);
}

/// The same for 8-bit floats, whose products the hardware adds up in fewer bits than f32 has: sums of one tile's K terms start at zero and are then added to d in f32.
template <class A, class B, int MI, int NI, int K, int Columns, int Pending = 0>
ACU_DEVICE void warpgroup_promoted_tile(float (&d)[MI * NI * 4], const typename A::Element* a, const typename B::Element* b, int thread) {
    float part[MI * NI * 4];
#pragma unroll
    for (int i = 0; i < MI * NI * 4; ++i) part[i] = 0;
    warpgroup_tile<A, B, MI, NI, K, Columns>(part, a, b, thread);
#pragma unroll
    for (int i = 0; i < MI * NI * 4; ++i) d[i] += part[i];
}
