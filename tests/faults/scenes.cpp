#include "tests/faults/faults.h"

namespace acu::faults {

static const std::string linear = R"(
  x: in f32[M, K]
  w: in f32[N, K]
  y: out f32[M, N]
  y.init: y[m, n] = 0.0  over m in M, n in N
  y: y[m, n] += x[m, k] * w[n, k]  over m in M, n in N, k! in K
}
)";

Scene product() {
    return {"program linear(M, N, K) {" + linear,
            {R"({"pass": "fuse", "scope": ["y"], "params": {"over": {"m": 4, "n": 6}, "kind": "grid"}})", R"({"pass": "tile", "scope": ["y"], "params": {"axes": {"k": 4}}})",
             R"({"pass": "keep", "scope": ["y"]})", R"({"pass": "stage", "scope": ["x", "w"], "params": {"at": "k.o"}})", R"({"pass": "pipeline", "scope": ["k.o"], "params": {"stages": 3}})"},
            {{"M", 5}, {"N", 7}, {"K", 18}}};
}

Scene asynchronous() {
    return {"program linear(M, N, K) where (K % 4l) == 0l {" + linear,
            {R"({"pass": "fuse", "scope": ["y"], "params": {"over": {"m": 4}, "kind": "grid"}})", R"({"pass": "tile", "scope": ["y"], "params": {"axes": {"k": 8}}})",
             R"({"pass": "stage", "scope": ["x"], "params": {"at": "k.o"}})", R"({"pass": "pad", "scope": ["x.t"]})", R"({"pass": "vectorize", "scope": ["x.t"], "params": {"width": 4}})",
             R"({"pass": "bind_copy", "scope": ["x.t"], "params": {"via": "common.copy_async"}})"},
            {{"M", 5}, {"N", 7}, {"K", 20}}};
}

Scene roles() {
    Scene s = product();
    s.steps.back() = R"({"pass": "warp_specialize", "scope": ["n.o"], "params": {"copies": ["x.t", "w.t"], "stages": 2}})";
    return s;
}

Scene rows() {
    return {R"(program rms(M, N) {
  x: in f32[M, N]
  s: temp f32[M]
  y: out f32[M, N]
  s.init: s[m] = 0.0  over m in M
  s: s[m] += x[m, n] * x[m, n]  over m in M, n! in N
  y: y[m, n] = x[m, n] * s[m]  over m in M, n in N
}
)",
            {R"({"pass": "fuse", "scope": ["s", "y"], "params": {"over": {"m": 1}, "kind": "grid"}})", R"({"pass": "keep", "scope": ["s"]})",
             R"({"pass": "bind_reduce", "scope": ["s"], "params": {"via": "common.block_reduce"}})"},
            {{"M", 3}, {"N", 70}}};
}

Scene columns() {
    return {R"(program colsum(M, N) {
  x: in f32[M, N]
  y: out f32[N]
  y.init: y[n] = 0.0  over n in N
  y: y[n] += x[m, n]  over n in N, m! in M
}
)",
            {R"({"pass": "split_reduction", "scope": ["y"], "params": {"axis": "m", "count": 3, "align": 2, "kind": "grid"}})"},
            {{"M", 11}, {"N", 5}}};
}

Scene lifted() {
    Scene s = product();
    s.steps = {s.steps[0], s.steps[1], s.steps[3], R"({"pass": "pad", "scope": ["x.t", "w.t"]})"};
    return s;
}

}  // namespace acu::faults
