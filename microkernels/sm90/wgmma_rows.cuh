// Products of rows in registers and tiles in shared memory by warpgroups: wgmma m64nNk16 (f16, bf16) with its first factor in registers. sm_90a.
// PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16": what a thread has of 16 columns of sums is, in this order, what it has of a factor with 16 terms.

#if ACU_PLAIN
/// As WgmmaElements, the first factor being four words of each lane.
struct WgmmaRowElements {
    static void spans(const emu::WgmmaOp& op, emu::Span* out, int* n) {
        const bool across = op.type >> 4 & 1;
        for (int along = 0; along < op.n; along += across ? 8 : 1)
            for (int k = 0; k < 16; k += across ? 1 : 8) out[(*n)++] = {WgmmaElements::at(op.b, op.type & 7, across, along, k), 16};
    }
    static void tile(const emu::WgmmaOp& op, int, const unsigned char* shared, float* const* d, const unsigned* const* a) {
        const int type = op.type & 7;
        static float x[16][16], y[16][256];
        for (int l = 0; l < 32; ++l)
            for (int i = 0; i < 8; ++i) {
                const unsigned short half = (unsigned short)(a[l][i / 2] >> 16 * (i % 2));
                x[l / 4 + 8 * (i / 2 % 2)][8 * (i / 4) + 2 * (l % 4) + i % 2] = type ? widen(bf16{half}) : widen(f16{half});
            }
        for (int k = 0; k < 16; ++k)
            for (int c = 0; c < op.n; ++c) y[k][c] = WgmmaElements::value(shared + WgmmaElements::at(op.b, type, op.type >> 4 & 1, c, k), type);
        for (int l = 0; l < 32; ++l)
            for (int i = 0; i < op.n / 2; ++i) {
                const int row = l / 4 + 8 * (i / 2 % 2), column = 8 * (i / 4) + 2 * (l % 4) + i % 2;
                for (int k = 0; k < 16; ++k) d[l][i] += x[row][k] * y[k][column];
            }
    }
};
#endif

#if !ACU_NATIVE
/// One instruction: d, of n / 2 registers, += a b; a: four words.
ACU_MK void warpgroup_rows_product(float* d, int n, int kind, const unsigned* a, unsigned long long b)
#if ACU_PLAIN
{
    emu::wgmma_issue_rows(d, emu::WgmmaOp{0, b, n, 1, kind}, a, &WgmmaRowElements::spans, &WgmmaRowElements::tile, EMU_SITE);
}
#else
;
#endif
#endif

/// d += a b for 8 N columns; `Across`: neighbours of b in memory do not lie along k.
template <class T, int N, bool Across>
struct WgmmaRows;

#if ACU_NATIVE
#define ACU_D(x) "+f"(x)
// Behind the r registers of sums: four of the factor, the description of b, how it lies.
#define ACU_WGMMA_ROWS(T, name, n, r, a, b, y)                                                                                                                                  \
    template <bool Across>                                                                                                                                                      \
    struct WgmmaRows<T, n / 8, Across> {                                                                                                                                        \
        ACU_DEVICE static void run(float (&d)[r], const unsigned* x, unsigned long long with) {                                                                                 \
            asm volatile(ACU_WGMMA_SUM("1") #n "k16.f32." name "." name " {" ACU_L##r "}, {" a "}, " b ", p, 1, 1, " y ";\n}"                                                        \
                         : ACU_O##r : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(with), "n"((int)Across));                                                                 \
        }                                                                                                                                                                       \
    };
#define ACU_WGMMAS_ROWS(n, r, a, b, y)             \
    ACU_WGMMA_ROWS(f16, "f16", n, r, a, b, y)      \
    ACU_WGMMA_ROWS(bf16, "bf16", n, r, a, b, y)
ACU_WGMMAS_ROWS(8, 4, "%4,%5,%6,%7", "%8", "%9")
ACU_WGMMAS_ROWS(16, 8, "%8,%9,%10,%11", "%12", "%13")
ACU_WGMMAS_ROWS(24, 12, "%12,%13,%14,%15", "%16", "%17")
ACU_WGMMAS_ROWS(32, 16, "%16,%17,%18,%19", "%20", "%21")
ACU_WGMMAS_ROWS(40, 20, "%20,%21,%22,%23", "%24", "%25")
ACU_WGMMAS_ROWS(48, 24, "%24,%25,%26,%27", "%28", "%29")
ACU_WGMMAS_ROWS(56, 28, "%28,%29,%30,%31", "%32", "%33")
ACU_WGMMAS_ROWS(64, 32, "%32,%33,%34,%35", "%36", "%37")
ACU_WGMMAS_ROWS(72, 36, "%36,%37,%38,%39", "%40", "%41")
ACU_WGMMAS_ROWS(80, 40, "%40,%41,%42,%43", "%44", "%45")
ACU_WGMMAS_ROWS(88, 44, "%44,%45,%46,%47", "%48", "%49")
ACU_WGMMAS_ROWS(96, 48, "%48,%49,%50,%51", "%52", "%53")
ACU_WGMMAS_ROWS(104, 52, "%52,%53,%54,%55", "%56", "%57")
ACU_WGMMAS_ROWS(112, 56, "%56,%57,%58,%59", "%60", "%61")
ACU_WGMMAS_ROWS(120, 60, "%60,%61,%62,%63", "%64", "%65")
ACU_WGMMAS_ROWS(128, 64, "%64,%65,%66,%67", "%68", "%69")
ACU_WGMMAS_ROWS(136, 68, "%68,%69,%70,%71", "%72", "%73")
ACU_WGMMAS_ROWS(144, 72, "%72,%73,%74,%75", "%76", "%77")
ACU_WGMMAS_ROWS(152, 76, "%76,%77,%78,%79", "%80", "%81")
ACU_WGMMAS_ROWS(160, 80, "%80,%81,%82,%83", "%84", "%85")
ACU_WGMMAS_ROWS(168, 84, "%84,%85,%86,%87", "%88", "%89")
ACU_WGMMAS_ROWS(176, 88, "%88,%89,%90,%91", "%92", "%93")
ACU_WGMMAS_ROWS(184, 92, "%92,%93,%94,%95", "%96", "%97")
ACU_WGMMAS_ROWS(192, 96, "%96,%97,%98,%99", "%100", "%101")
ACU_WGMMAS_ROWS(200, 100, "%100,%101,%102,%103", "%104", "%105")
ACU_WGMMAS_ROWS(208, 104, "%104,%105,%106,%107", "%108", "%109")
ACU_WGMMAS_ROWS(216, 108, "%108,%109,%110,%111", "%112", "%113")
ACU_WGMMAS_ROWS(224, 112, "%112,%113,%114,%115", "%116", "%117")
ACU_WGMMAS_ROWS(232, 116, "%116,%117,%118,%119", "%120", "%121")
ACU_WGMMAS_ROWS(240, 120, "%120,%121,%122,%123", "%124", "%125")
ACU_WGMMAS_ROWS(248, 124, "%124,%125,%126,%127", "%128", "%129")
ACU_WGMMAS_ROWS(256, 128, "%128,%129,%130,%131", "%132", "%133")
#undef ACU_D
#else
template <class T, int N, bool Across>
struct WgmmaRows {
    ACU_DEVICE static void run(float (&d)[4 * N], const unsigned* x, unsigned long long with) { warpgroup_rows_product(d, 8 * N, WgmmaOf<T>::type | (int)Across << 4, x, with); }
};
#endif

/// d += a b: warpgroup w has 64 MI rows and all 8 NI columns; words: its rows, K terms of each, two in a word, as sums of K columns lie. At most `Pending` such products stay on their
/// way. Registers of d: those of an m64n8 fragment, then the NI, then the MI.
template <class B, int MI, int NI, int K, int Columns, int Pending = 0>
ACU_DEVICE void warpgroup_rows(float (&d)[MI * NI * 4], const unsigned (&words)[MI * K / 4], const typename B::Element* b, int) {
    typedef typename B::Element T;
    static_assert(K % 16 == 0 && NI <= 32 && Columns == 1, "a tile is made of whole instructions");
    const unsigned long long with = descriptor_of<B>(b, start_of<B>(0, 0));
    warpgroup_fence();
#pragma unroll
    for (int k = 0; k < K; k += 16)
#pragma unroll
        for (int i = 0; i < MI; ++i) WgmmaRows<T, NI, !B::deep>::run(*reinterpret_cast<float(*)[NI * 4]>(&d[i * NI * 4]), &words[i * (K / 4) + k / 4], with + (unsigned)(start_of<B>(0, k) >> 4));
    warpgroup_commit();
    warpgroup_wait<Pending>(d);
}
/// The same with floats, which are rounded to the type of b.
template <class B, int MI, int NI, int K, int Columns, int Pending = 0>
ACU_DEVICE void warpgroup_rows(float (&d)[MI * NI * 4], const float (&a)[MI * K / 2], const typename B::Element* b, int thread) {
    unsigned words[MI * K / 4];
#pragma unroll
    for (int i = 0; i < MI * K / 4; ++i) words[i] = Pair<typename B::Element>::of(a[2 * i], a[2 * i + 1]);
    warpgroup_rows<B, MI, NI, K, Columns, Pending>(d, words, b, thread);
}
