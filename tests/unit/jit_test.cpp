#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "codegen/jit.h"
#include "ir/lower/lower.h"
#include "ir/scalar.h"

using namespace acu;
using namespace acu::ir;

namespace {

/// A program as text, and sizes for it. Inputs are random. Of integer inputs those named `at…` lie in 0 .. 4, those named `far…` in -3 .. 8, and
/// `offsets` ascends from 0 to 9; scalars are random too.
struct Case {
    std::string name, text;
    Env dims = {};
};

const std::vector<Case>& cases() {
    static const std::vector<Case> list{
        {"float operators", R"(program p(N) { x: in f32[N] y: in f32[N] z: out f32[N, 5]
            a: z[i, 0], z[i, 1], z[i, 2], z[i, 3], z[i, 4] = x[i] + y[i], x[i] - y[i], x[i]*y[i], x[i]/y[i], -x[i] over i in N })", {{"N", 301}}},
        {"no contraction", R"(program p(N) { x: in f32[N] y: in f64[N] z: out f32[N] w: out f64[N]
            a: z[i], w[i] = x[i]*x[i] + x[N - 1 - i], y[i]*y[i] - y[N - 1 - i] over i in N })", {{"N", 300}}},
        {"double operators", R"(program p(N) { x: in f64[N] y: in f64[N] z: out f64[N, 4] w: out f32[N]
            a: z[i, 0], z[i, 1], z[i, 2], z[i, 3], w[i] = x[i] + y[i], x[i] - y[i], x[i]*y[i], x[i]/y[i], f32(x[i]*y[i]) over i in N })", {{"N", 301}}},
        {"comparisons", R"(program p(N) { x: in f32[N] y: in f32[N] z: out bool[N, 7]
            a: z[i, 0], z[i, 1], z[i, 2], z[i, 3], z[i, 4], z[i, 5], z[i, 6] = x[i] == y[i], x[i] != y[i], x[i] < y[i], x[i] <= y[i], x[i] > y[i],
               x[i] >= y[i], !(x[i] < y[i]) over i in N })", {{"N", 400}}},
        {"i32 operators", R"(program p(N) { x: in i32[N] y: in i32[N] z: out i32[N, 12]
            a: z[i, 0], z[i, 1], z[i, 2], z[i, 3], z[i, 4], z[i, 5], z[i, 6], z[i, 7], z[i, 8], z[i, 9], z[i, 10], z[i, 11] = x[i] + y[i], x[i] - y[i],
               x[i]*y[i], x[i]/y[i], x[i] % y[i], x[i] << y[i], x[i] >> y[i], x[i] & y[i], x[i] ^ y[i], x[i] | y[i], ~x[i], -x[i] over i in N })", {{"N", 500}}},
        {"i64 operators", R"(program p(N) { x: in i64[N] y: in i64[N] z: out i64[N, 12]
            a: z[i, 0], z[i, 1], z[i, 2], z[i, 3], z[i, 4], z[i, 5], z[i, 6], z[i, 7], z[i, 8], z[i, 9], z[i, 10], z[i, 11] = x[i] + y[i], x[i] - y[i],
               x[i]*y[i], x[i]/y[i], x[i] % y[i], x[i] << y[i], x[i] >> y[i], x[i] & y[i], x[i] ^ y[i], x[i] | y[i], ~x[i], -x[i] over i in N })", {{"N", 500}}},
        {"division by constants", R"(program p(N) { x: in i64[N] z: out i64[N, 10]
            a: z[i, 0], z[i, 1], z[i, 2], z[i, 3], z[i, 4], z[i, 5], z[i, 6], z[i, 7], z[i, 8], z[i, 9] = x[i]/8, x[i] % 8, x[i]/7, x[i] % 7, x[i]/(-3),
               x[i] % (-3), x[i]/(-1), x[i] % (-1), x[i]/0, x[i] % 0 over i in N })", {{"N", 300}}},
        {"integer comparisons and truth", R"(program p(N) { x: in i32[N] y: in i64[N] p: in bool[N] z: out bool[N, 9]
            a: z[i, 0], z[i, 1], z[i, 2], z[i, 3], z[i, 4], z[i, 5], z[i, 6], z[i, 7], z[i, 8] = x[i] == y[i], x[i] < y[i], x[i] >= y[i], p[i] and (x[i] > 0),
               p[i] or (y[i] > 0l), !p[i], p[i] ^ (x[i] < 0), p[i] & (x[i] < 0), ~p[i] over i in N })", {{"N", 300}}},
        {"narrow integers", R"(program p(N) { a: in i8[N] b: in u8[N] c: in i16[N] z: out i32[N, 3] s: out i8[N] t: out u8[N] u: out i16[N]
            k: z[i, 0], z[i, 1], z[i, 2] = a[i]*b[i], b[i] - c[i], c[i]*c[i] over i in N
            l: s[i], t[i], u[i] = a[i]*b[i], b[i] - c[i], c[i]*c[i] over i in N })", {{"N", 300}}},
        {"casts from f32", R"(program p(N) { x: in f32[N] a: out i8[N] b: out u8[N] c: out i16[N] d: out i32[N] e: out i64[N] f: out bool[N] g: out f64[N]
            h: out f32[N, 5] r: out f16[N] s: out bf16[N] t: out f8e4m3[N] u: out f8e5m2[N]
            k: a[i], b[i], c[i], d[i], e[i], f[i], g[i] = i8(x[i]), u8(x[i]), i16(x[i]), i32(x[i]), i64(x[i]), bool(x[i]), f64(x[i]) over i in N
            l: h[i, 0], h[i, 1], h[i, 2], h[i, 3], h[i, 4] = f16(x[i]), bf16(x[i]), f8e4m3(x[i]), f8e5m2(x[i]), tf32(x[i]) over i in N
            m: r[i], s[i], t[i], u[i] = x[i], x[i], x[i], x[i] over i in N })", {{"N", 900}}},
        {"casts from f64", R"(program p(N) { x: in f64[N] a: out i8[N] b: out u8[N] c: out i16[N] d: out i32[N] e: out i64[N] f: out bool[N] g: out f32[N]
            h: out f32[N, 5] r: out f16[N] s: out bf16[N] t: out f8e4m3[N] u: out f8e5m2[N]
            k: a[i], b[i], c[i], d[i], e[i], f[i], g[i] = i8(x[i]), u8(x[i]), i16(x[i]), i32(x[i]), i64(x[i]), bool(x[i]), f32(x[i]) over i in N
            l: h[i, 0], h[i, 1], h[i, 2], h[i, 3], h[i, 4] = f16(x[i]), bf16(x[i]), f8e4m3(x[i]), f8e5m2(x[i]), tf32(x[i]) over i in N
            m: r[i], s[i], t[i], u[i] = x[i], x[i], x[i], x[i] over i in N })", {{"N", 900}}},
        {"casts from integers", R"(program p(N) { x: in i32[N] y: in i64[N] a: out i32[N, 6] b: out f32[N, 6] c: out f64[N] d: out i64[N] e: out f32[N] f: out f16[N] p: out bool[N]
            k: a[i, 0], a[i, 1], a[i, 2], a[i, 3], a[i, 4], a[i, 5] = i8(x[i]), u8(y[i]), i16(y[i]), i32(y[i]), i16(x[i]), i8(y[i]) over i in N
            l: b[i, 0], b[i, 1], b[i, 2], b[i, 3], b[i, 4], b[i, 5] = f32(x[i]), f32(y[i]), f16(y[i]), bf16(y[i]), f8e4m3(x[i]), tf32(y[i]) over i in N
            m: c[i], d[i], e[i], f[i], p[i] = f64(y[i]), i64(x[i]), y[i], y[i], bool(y[i]) over i in N })", {{"N", 500}}},
        {"every float type in", R"(program p(N) { a: in f16[N] b: in bf16[N] c: in f8e4m3[N] d: in f8e5m2[N] z: out f32[N, 5] s: out bf16[N] t: out f16[N]
            k: z[i, 0], z[i, 1], z[i, 2], z[i, 3], z[i, 4] = a[i], b[i], c[i], d[i], a[i]*b[i] + c[i] over i in N
            l: s[i], t[i] = b[i], a[i] over i in N })", {{"N", 2000}}},
        {"f32 functions", R"(program p(N) { x: in f32[N] y: in f32[N] z: out f32[N, 23] w: out bool[N, 2]
            a: z[i, 0], z[i, 1], z[i, 2], z[i, 3], z[i, 4], z[i, 5], z[i, 6], z[i, 7], z[i, 8], z[i, 9], z[i, 10], z[i, 11] = exp(x[i]), exp2(x[i]), expm1(x[i]),
               log(x[i]), log2(x[i]), log1p(x[i]), sqrt(x[i]), rsqrt(x[i]), sin(x[i]), cos(x[i]), tan(x[i]), tanh(x[i]) over i in N
            b: z[i, 12], z[i, 13], z[i, 14], z[i, 15], z[i, 16], z[i, 17], z[i, 18], z[i, 19], z[i, 20], z[i, 21], z[i, 22] = erf(x[i]), floor(x[i]), ceil(x[i]),
               round(x[i]), trunc(x[i]), pow(x[i], y[i]), fma(x[i], y[i], x[N - 1 - i]), abs(x[i]), sign(x[i]), max(x[i], y[i]), min(x[i], y[i]) over i in N
            c: w[i, 0], w[i, 1] = isnan(x[i]), isinf(x[i]) over i in N })", {{"N", 700}}},
        {"f64 functions", R"(program p(N) { x: in f64[N] y: in f64[N] z: out f64[N, 23] w: out bool[N, 2]
            a: z[i, 0], z[i, 1], z[i, 2], z[i, 3], z[i, 4], z[i, 5], z[i, 6], z[i, 7], z[i, 8], z[i, 9], z[i, 10], z[i, 11] = exp(x[i]), exp2(x[i]), expm1(x[i]),
               log(x[i]), log2(x[i]), log1p(x[i]), sqrt(x[i]), rsqrt(x[i]), sin(x[i]), cos(x[i]), tan(x[i]), tanh(x[i]) over i in N
            b: z[i, 12], z[i, 13], z[i, 14], z[i, 15], z[i, 16], z[i, 17], z[i, 18], z[i, 19], z[i, 20], z[i, 21], z[i, 22] = erf(x[i]), floor(x[i]), ceil(x[i]),
               round(x[i]), trunc(x[i]), pow(x[i], y[i]), fma(x[i], y[i], x[N - 1 - i]), abs(x[i]), sign(x[i]), max(x[i], y[i]), min(x[i], y[i]) over i in N
            c: w[i, 0], w[i, 1] = isnan(x[i]), isinf(x[i]) over i in N })", {{"N", 700}}},
        {"integer functions", R"(program p(N) { x: in i32[N] y: in i64[N] z: out i64[N, 4] w: out i32[N, 2] r: out f32[N]
            a: z[i, 0], z[i, 1], z[i, 2], z[i, 3] = abs(y[i]), sign(y[i]), max(x[i], y[i]), min(x[i], y[i]) over i in N
            b: w[i, 0], w[i, 1], r[i] = abs(x[i]), sign(x[i]), exp(x[i]) over i in N })", {{"N", 300}}},
        {"constants", R"(program p(N) { z: out f32[N, 6] w: out f64[N, 3] v: out i64[N, 3]
            a: z[i, 0], z[i, 1], z[i, 2], z[i, 3], z[i, 4], z[i, 5] = 0.1, -inf, nan, 1e-45, 3, 1.0/3.0 over i in N
            b: w[i, 0], w[i, 1], w[i, 2] = 0.1d, 0.1, infd over i in N
            c: v[i, 0], v[i, 1], v[i, 2] = 9223372036854775807l, i*i - 7, -5 over i in N })", {{"N", 3}}},
        {"index arithmetic", R"(program p(N, M=3) { x: in f32[N*M] z: out i64[N, 8] y: out f32[N]
            a: z[i, 0], z[i, 1], z[i, 2], z[i, 3], z[i, 4], z[i, 5], z[i, 6], z[i, 7] = i/M, i % M, (i - 9)/4, (i - 9) % 4, min(i, 5), (i - 9)/(0 - M), (i - 9) % (0 - M), (i - 9)/(i - 9) over i in N
            b: y[i] = x[(i*7 + 3) % (N*M)] over i in N })", {{"N", 40}}},
        {"select guards the load", R"(program p(N) { x: in f32[N] z: out f32[N] w: out f32[N]
            a: z[i] = (x[i + 1] if i + 1 < N else -1.0) over i in N
            b: w[i] = (1.0 if i + 1 < N and x[i + 1] > 0.0 else (2.0 if i == 0 or x[i - 1] > 0.0 else x[i])) over i in N })", {{"N", 50}}},
        {"defaults", R"(program p(N) { x: in f32[N] y: in i8[N, N] z: out f32[N, N] w: out i32[N, N]
            a: z[i, j] = (x[i + j - 3] default x[i]*2.0) over i in N, j in N
            b: w[i, j] = (y[i - 1, j + 1] default 77) over i in N, j in N })", {{"N", 9}}},
        {"default of a gather", R"(program p(N, T=5) { t: in f32[T, 4] far: in i32[N] z: out f32[N, 4]
            a: z[i, j] = (t[far[i], j] default 0.5) over i in N, j in 4 })", {{"N", 60}}},
        {"gather", R"(program p(N, T=5) { t: in f16[T, 4] at: in i64[N] at2: in u8[T] z: out f32[N, 4]
            a: z[i, j] = t[at2[at[i]], j] over i in N, j in 4 })", {{"N", 60}}},
        {"guards", R"(program p(N) { x: in f32[N] y: in bool[N] z: out f32[N]
            f: z[i] = 0.0 over i in N
            a: z[i] = x[i + 1] over i in N where i + 1 < N; y[i] and (x[i + 1] > 0.0) })", {{"N", 64}}},
        {"scatter", R"(program p(N, T=5) { far: in i32[N] x: in f32[N] z: out f32[T] c: out i32[T]
            f: z[t], c[t] = 0.0, 0 over t in T
            a: z[far[i]] += x[i] over i in N
            b: c[far[i]] += 1 over i in N })", {{"N", 80}}},
        {"scatter with maximum", R"(program p(N, T=5) { far: in i64[N] x: in bf16[N, 3] z: out bf16[T, 3]
            f: z[t, j] = -inf over t in T, j in 3
            a: z[far[i], j] max= x[i, j] over i in N, j in 3 })", {{"N", 40}}},
        {"sums into narrow types", R"(program p(N) { x: in f32[N] a: out f32[] b: out f16[] c: out bf16[] d: out f64[] e: out f8e4m3[]
            f: a[], b[], c[], d[], e[] = 0.0, 0.0, 0.0, 0.0, 0.0
            k: a[] += x[i] over i! in N
            l: b[] += x[i] over i! in N
            m: c[] += x[i] over i! in N
            n: d[] += x[i] over i! in N
            o: e[] += x[i] over i! in N })", {{"N", 100}}},
        {"monoids of floats", R"(program p(M, N) { x: in f32[M, N] a: out f32[M] b: out f32[M] c: out f16[M] d: out f64[M]
            f: a[m], b[m], c[m], d[m] = 1.0, -inf, inf, -infd over m in M
            k: a[m] *= x[m, i] over m in M, i! in N
            l: b[m] max= x[m, i] over m in M, i! in N
            n: c[m] min= x[m, i] over m in M, i! in N
            o: d[m] max= x[m, i] over m in M, i! in N })", {{"M", 20}, {"N", 7}}},
        {"monoids of integers", R"(program p(M, N) { x: in i8[M, N] y: in i64[M, N] a: out i32[M] b: out i64[M] c: out i64[M] d: out i8[M] e: out u8[M] g: out i32[M]
            f: a[m], b[m], c[m], d[m], e[m], g[m] = 0, 1l, -9223372036854775807l, 100, 0, 0 over m in M
            k: a[m] += x[m, i] over m in M, i! in N
            l: b[m] *= y[m, i] over m in M, i! in N
            n: c[m] max= y[m, i] over m in M, i! in N
            o: d[m] min= x[m, i] over m in M, i! in N
            q: e[m] += x[m, i] over m in M, i! in N
            r: g[m] += y[m, i] over m in M, i! in N })", {{"M", 20}, {"N", 9}}},
        {"any and all", R"(program p(M, N) { x: in f32[M, N] y: in bool[M, N] a: out bool[M] b: out bool[M] c: out bool[M]
            f: a[m], b[m], c[m] = false, true, false over m in M
            k: a[m] any= x[m, i] > 1.0 over m in M, i! in N
            l: b[m] all= y[m, i] over m in M, i! in N
            n: c[m] any= bool(x[m, i]) over m in M, i! in N })", {{"M", 30}, {"N", 3}}},
        {"argmax and argmin", R"(program p(M, N) { x: in f32[M, N] y: in i32[M, N] h: in bf16[M, N] a: out f32[M] b: out i64[M] c: out f32[M] d: out i32[M] e: out i32[M] g: out i64[M]
            s: out bf16[M] t: out i64[M]
            f: a[m], b[m], c[m], d[m], e[m], g[m], s[m], t[m] = -inf, -1l, inf, -1, 0, -1l, 0.0, 0l over m in M
            k: a[m], b[m] argmax= x[m, i], i over m in M, i! in N
            l: c[m], d[m] argmin= x[m, i], i over m in M, i! in N
            n: e[m], g[m] argmax= y[m, i], i over m in M, i! in N
            o: s[m], t[m] argmax= x[m, i]*h[m, i], i over m in M, i! in N where i != 2 })", {{"M", 40}, {"N", 6}}},
        {"topk", R"(program p(M, N) { x: in f32[M, N] y: in i64[M, N] a: out f32[M, 3] b: out i64[M, 3] c: out f16[M, 2] d: out i32[M, 2] e: out i64[M, 2] g: out i64[M, 2]
            f: a[m, j], b[m, j] = -inf, -1l over m in M, j in 3
            h: c[m, j], d[m, j], e[m, j], g[m, j] = -inf, 0, 0, -1 over m in M, j in 2
            k: a[m], b[m] topk(3)= x[m, i], i over m in M, i! in N
            l: c[m], d[m] topk(2)= x[m, i], i over m in M, i! in N
            n: e[m], g[m] topk(2)= y[m, i], i over m in M, i! in N })", {{"M", 30}, {"N", 8}}},
        {"scan", R"(program p(M, N) { x: in f32[M, N] s: temp f32[M] t: temp f16[M] a: out f32[M, N] b: out f32[M, N] c: out f16[M, N]
            f: s[m], t[m] = 0.0, -inf over m in M
            k: s[m], a[m, i] += x[m, i] over m in M, i^ in N
            g: s[m] = 1.0 over m in M
            l: s[m], b[m, i] exclusive *= x[m, i] over m in M, i^ in N
            n: t[m], c[m, i] max= x[m, i] over m in M, i^ in N })", {{"M", 12}, {"N", 17}}},
        {"segments", R"(program p(N, S=5) { x: in f32[N] offsets: in i32[S] z: out f32[4] y: out i64[N]
            f: z[e] = 0.0 over e in 4
            for e in 4 { a: z[e] += x[i] over i! in offsets[e] +: offsets[e + 1] - offsets[e] }
            b: y[i] = segment(offsets, i) over i in N })", {{"N", 9}}},
        {"loops, windows, registers", R"(program p(M, N) { x: in f32[M, N] y: out f32[M, N]
            for u in (M + 3)/4 grid, m0 = u*4 {
              t: register f32[m0 +: 4, 0 +: N]
              load: t[m, n] = (x[m, n] default 0.0) over m in m0 +: 4, n in N
              for v! in N, n0 = N - 1 - v {
                r: register f64[]
                i: r[] = 0.0d
                s: r[] += t[m, n0] over m! in m0 +: 4
                w: y[m, n0] = f32(r[]) + t[m, n0] over m in m0 +: 4 where m < M
              }
            } })", {{"M", 10}, {"N", 7}}},
        {"large and sized buffers", R"(program p(M, N) { x: in f32[N] y: out f32[N] 
            for u in M { t: register f32[u +: N, u + 1] q: temp f64[40000]
              a: t[u + i, j] = x[i] + 1.0 over i in N, j in u + 1
              c: q[i] = x[i] over i in N
              b: y[i] = t[u + i, u]*f32(q[i]) over i in N
            } })", {{"M", 4}, {"N", 7}}},
        {"conditions", R"(program p(N) { x: in i32[N] k: param i32[] y: out i32[N]
            for i in N { if x[i] > k[] { a: y[i] = 1 } else { if x[i] % 2 == 0 { b: y[i] = 2 } else { c: y[i] = x[i] } } } })", {{"N", 100}}},
        {"scalars", R"(program p(N) { x: in f32[N] a: param f32[] b: param i8[] c: param f64[] d: param bool[] e: param bf16[] y: out f64[N]
            k: y[i] = (x[i]*a[] + b[] if d[] else e[]) - c[] over i in N })", {{"N", 10}}},
        {"empty", R"(program p(N) { x: in f32[N] s: out f32[] y: out f32[N] f: s[] = 1.0 k: s[] += x[i] over i! in N l: y[i] = x[i] over i in N })", {{"N", 0}}},
        {"matmul", R"(program p(M, N, K) { a: in bf16[M, K] b: in f16[K, N] c: out f32[M, N]
            f: c[m, n] = 0.0 over m in M, n in N
            k: c[m, n] += a[m, k]*b[k, n] over m in M, n in N, k! in K })", {{"M", 9}, {"N", 21}, {"K", 13}}},
        {"the accumulator is read", R"(program p(M, N) { x: in f32[M, N] c: out f32[N]
            f: c[n] = 1.0 over n in N
            k: c[n] += x[m, n]*c[(n + 1) % N] over n in N, m! in M })", {{"M", 5}, {"N", 6}}},
        {"softmax at tensor level", R"(tensor p(M, N) { x: in f32[M, N] y: out f32[M, N]
            a: y[m, n] = exp(x[m, n] - (max(j in N) x[m, j]))/(sum(j in N) exp(x[m, j] - (max(i in N) x[m, i]))) over m in M, n in N })", {{"M", 5}, {"N", 9}}},
        {"layer norm at tensor level", R"(tensor p(M, N) { x: in bf16[M, N] y: out bf16[M, N]
            a: y[m, n] = (x[m, n] - (sum(j in N) x[m, j])/f32(N))*rsqrt((sum(j in N) x[m, j]*x[m, j])/f32(N) + 0.00001) over m in M, n in N })", {{"M", 5}, {"N", 9}}},
        {"reductions at tensor level", R"(tensor p(M, N) { x: in f32[M, N] y: out i64[M] z: out f32[M] w: out bool[M]
            a: y[m] = (argmax(j in N) x[m, j]) over m in M
            b: z[m] = (min(j in N where j != 2) x[m, j]) over m in M
            c: w[m] = (any(j in N) x[m, j] > 3.0) over m in M })", {{"M", 15}, {"N", 9}}},
    };
    return list;
}

class Random {
  public:
    explicit Random(uint64_t seed) : gen_(seed), tame_(seed % 2 == 0) {}

    int64_t below(int64_t n) { return static_cast<int64_t>(gen_() % static_cast<uint64_t>(n)); }

    /// Half of the seeds give numbers of moderate size, the other half the corners of the type and random bits.
    void fill(const std::string& name, Array& a) {
        const size_t width = info(a.type).bytes;
        for (int64_t i = 0; i < a.count(); ++i) {
            if (name == "offsets") a.set(i, static_cast<double>(i * 9 / std::max<int64_t>(1, a.count() - 1)));
            else if (name.starts_with("at")) a.set(i, static_cast<double>(below(5)));
            else if (name.starts_with("far")) a.set(i, static_cast<double>(below(12) - 3));
            else if (!tame_ && below(3) == 0) bits(a, static_cast<size_t>(i) * width, width);
            else a.set(i, number(a.type));
        }
    }

    double number(DType type) {
        static const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
        static const std::vector<double> corners{0.0,  -0.0, 1,       -1,    2,          -3,      31,           33,    127,    128,     -128,          -129,       255,      256,
                                                 0.5,  1.5,  2.5,     -0.5,  32767.5,    65519,   65520,        464,   57344,  61440,   2147483647.5, -2147483649, 9.3e18,   -9.3e18,
                                                 1e38, 4e38, 1e-45,   3e-39, 1e-310,     1e308,   5.960464e-8, 1e-8,  0.001953125,    0.0009765625, 1.17549435e-38, 3.4e38, inf,  -inf, nan, -nan};
        if (!tame_ && below(2) == 0) return corners[static_cast<size_t>(below(static_cast<int64_t>(corners.size())))];
        const double x = std::normal_distribution<double>(0, 3)(gen_);
        return is_float(type) ? x : std::round(4 * x);
    }

  private:
    void bits(Array& a, size_t at, size_t width) {
        uint64_t r = gen_();
        if (a.type == DType::Bool) r &= 1;
        std::memcpy(&a.bytes[at], &r, width);
    }
    std::mt19937_64 gen_;
    bool tame_;
};

std::string first_difference(const Array& a, const Array& b) {
    if (a.type != b.type || a.sizes != b.sizes) return "another type or shape";
    const size_t width = info(a.type).bytes;
    for (int64_t i = 0; i < a.count(); ++i) {
        const size_t at = static_cast<size_t>(i) * width;
        if (!std::memcmp(&a.bytes[at], &b.bytes[at], width)) continue;
        if (is_float(a.type) && std::isnan(a.get(i)) && std::isnan(b.get(i))) continue;    // sign and payload of a NaN are open
        return fmt::format("element {}: interpreter {}, compiled {}", i, a.get(i), b.get(i));
    }
    return "";
}

/// The property: the compiled program writes the bytes that the interpreter writes.
void check_agreement(const Program& p, const Env& dims, uint64_t seed) {
    const auto kernel = codegen::CpuKernel::compile(p);
    if (!kernel) FAIL(kernel.why().message);
    for (int round = 0; round < 6; ++round) {
        Random random(seed + static_cast<uint64_t>(round));
        Arguments args{dims, {}};
        Env all = dims;
        all.merge(known_dims(p));
        Arrays expected;
        for (const Decl& d : p.decls) {
            if (d.scope == Scope::Param) args.scalars[d.name] = random.number(d.type);
            if (d.scope == Scope::In) random.fill(d.name, expected[d.name] = Array::zeros(d.type, sizes_of(d, all)));
        }
        Arrays got = expected;
        const Status a = interpret(p, args, expected), b = (*kernel)->run(args, got);
        if (!a) FAIL(a.why().message);
        if (!b) FAIL(b.why().message);
        for (const auto& [name, array] : expected) {
            INFO("`", name, "`, round ", round);
            CHECK_EQ(first_difference(array, got[name]), "");
        }
    }
}

Program parsed(const std::string& text) {
    auto p = parse_program(text);
    if (!p) FAIL(fmt::format("{}: {}", p.why().loc.line, p.why().message));
    return *p;
}

uint64_t seed_of_run() {
    const char* given = std::getenv("ACU_SEED");
    return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

}  // namespace

TEST_CASE("compiled programs agree with the interpreter") {
    const uint64_t seed = seed_of_run();
    MESSAGE("ACU_SEED=", seed);
    for (const Case& c : cases()) {
        INFO(c.name, ", ACU_SEED=", seed);
        const Program p = parsed(c.text);
        if (p.level == Level::Loop) {
            for (const Violation& v : verify(p)) FAIL_CHECK(v.rule, ": ", v.what);
            check_agreement(p, c.dims, seed);
            check_agreement(lower::in_float64(p), c.dims, seed);
            continue;
        }
        const Program loops = lower::lower_reductions(p);
        check_agreement(loops, c.dims, seed);
        check_agreement(lower::fallback_plan(loops), c.dims, seed);
        check_agreement(lower::in_float64(lower::fallback_plan(loops)), c.dims, seed);
    }
}

TEST_CASE("what does not fit is a diagnostic") {
    const Program p = parsed("program p(N) { x: in f32[N] s: param f32[] y: out f32[N] k: y[i] = x[i]*s[] over i in N }");
    const auto kernel = codegen::CpuKernel::compile(p);
    REQUIRE(kernel);
    const auto both = [&](const Arguments& args, Arrays arrays) {
        Arrays copy = arrays;
        const Status a = interpret(p, args, copy), b = (*kernel)->run(args, arrays);
        REQUIRE(!a);
        REQUIRE(!b);
        CHECK_EQ(a.why().code, b.why().code);
        CHECK_EQ(a.why().message, b.why().message);
    };
    const Arrays good{{"x", Array::zeros(DType::F32, {4})}};
    both({{{"N", 4}}, {}}, good);
    both({{{"N", 5}}, {{"s", 1}}}, good);
    both({{{"N", 4}}, {{"s", 1}}}, {});
    both({{{"N", 4}}, {{"s", 1}}}, {{"x", Array::zeros(DType::F64, {4})}});
    both({{}, {{"s", 1}}}, good);
}

TEST_CASE("a place outside that depends on data does not crash") {
    const Program p = parsed(R"(program p(N) { x: in f32[N] t: in i64[N] y: out f32[N] z: out f32[N]
        f: z[i] = 0.0 over i in N
        a: y[i] = x[t[t[i]]] over i in N
        b: z[t[i]] = x[i] over i in N })");
    const auto kernel = codegen::CpuKernel::compile(p);
    REQUIRE(kernel);
    Arrays arrays{{"x", Array::zeros(DType::F32, {4})}, {"t", Array::zeros(DType::I64, {4})}};
    for (int i = 0; i < 4; ++i) arrays["x"].set(i, i + 1.0), arrays["t"].set(i, i == 2 ? 3 : (i - 1) * 1e15);
    REQUIRE((*kernel)->run({{{"N", 4}}, {}}, arrays));
    CHECK_EQ(arrays["y"].get(0), 1);    // t[…] outside is 0
    CHECK_EQ(arrays["y"].get(1), 0);
    CHECK_EQ(arrays["z"].get(3), 3);
}

TEST_CASE("a program that cannot be compiled") {
    const auto reduction = codegen::CpuKernel::compile(parsed("tensor p(N) { x: in f32[N] y: out f32[] k: y[] = (sum(i in N) x[i]) }"));
    REQUIRE(!reduction);
    CHECK_EQ(reduction.why().code, "codegen.unsupported");
    CHECK_FALSE(codegen::CpuKernel::compile(parsed("program p(N) { y: out f32[N] k: y[i] = 1.0 over i in Q }")));
}

TEST_CASE("the module can be read") {
    const auto kernel = codegen::CpuKernel::compile(parsed("program saxpy(N) { x: in f32[N] y: out f32[N] k: y[i] = 2.0*x[i] over i in N }"));
    REQUIRE(kernel);
    CHECK_NE((*kernel)->llvm_ir().find("fmul"), std::string::npos);
    CHECK(codegen::llvm_version().starts_with("19"));
}
