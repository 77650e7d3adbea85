#include "tests/property/random_operators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace acu::property {
namespace {

/// A tensor that expressions may read: its name, and its dimensions as letters `a`, `b`, …, whose sizes are `A`, `B`, ….
struct Tensor {
    std::string name, dims;
    bool floats = true;
};

class Operator {
  public:
    Operator(std::string name, Random& random) : name_(std::move(name)), random_(random) {}

    std::string text() {
        const size_t rank = 1 + below(3);
        dims_ = std::string("abc").substr(0, rank);
        inputs();
        const size_t statements = 1 + below(4);
        for (size_t i = 0; i < statements; ++i) statement(i + 1 == statements);
        return fmt::format("op {}({}) -> ({}) {{\n{}}}\ncase {} for {} {{ {}{} }}\n", name_, fmt::join(parameters_, ", "), fmt::join(outputs_, ", "), body_, name_, name_, sizes(), drawn_);
    }

  private:
    size_t below(size_t n) { return random_() % n; }
    bool one_in(size_t n) { return below(n) == 0; }
    template <class T>
    const T& any(const std::vector<T>& list) { return list[below(list.size())]; }

    static std::string upper(const std::string& dims) {
        std::string s;
        for (const char c : dims) s += fmt::format("{}{}", s.empty() ? "" : ", ", static_cast<char>(c - 'a' + 'A'));
        return s;
    }
    static std::string lower(const std::string& dims) { return fmt::format("{}", fmt::join(dims, ", ")); }

    std::string subset(const std::string& of) {
        std::string s;
        for (const char c : of)
            if (!one_in(3)) s += c;
        return s;
    }

    void inputs() {
        const size_t count = 1 + below(3);
        for (size_t i = 0; i < count; ++i) {
            std::string mine = i == 0 ? dims_ : subset(dims_);    // the first has all, so that every size is known
            if (one_in(4)) std::ranges::shuffle(mine, random_);
            const std::string name = fmt::format("x{}", i), type = any<std::string>({"f32", "f32", "f16", "f16", "bf16", "bf16", "i32"});
            parameters_.push_back(fmt::format("{}: {}[{}]", name, type, upper(mine)));
            tensors_.push_back({name, mine, type != "i32"});
            if (type == "i32") drawn_ += fmt::format(", {} = integers(-9, 9)", name);
        }
    }

    /// Of a tensor whose dimensions are all among the axes; else a constant.
    std::string load(const std::string& axes) {
        std::vector<Tensor> fitting;
        for (const Tensor& t : tensors_)
            if (std::ranges::all_of(t.dims, [&](char c) { return axes.find(c) != std::string::npos; })) fitting.push_back(t);
        if (fitting.empty() || one_in(8)) return any<std::string>({"0.5", "2", "-1.25", "3"});
        const Tensor& t = any(fitting);
        std::string at = lower(t.dims), wrap = "{}";
        if (!t.dims.empty() && one_in(8)) {    // a neighbour
            at.back() = t.dims.back();
            at += any<std::string>({" - 1", " + 1", " + 2"});
            wrap = "({} or 0)";
        }
        const std::string cell = fmt::format(fmt::runtime(wrap), fmt::format("{}[{}]", t.name, at));
        return t.floats ? cell : fmt::format("f32({})", cell);
    }

    std::string expression(const std::string& axes, int depth) {
        if (depth == 0 || one_in(4)) return load(axes);
        const std::string a = expression(axes, depth - 1);
        switch (below(9)) {
            case 0: return fmt::format("({} + {})", a, expression(axes, depth - 1));
            case 1: return fmt::format("({} - {})", a, expression(axes, depth - 1));
            case 2: return fmt::format("({} * {})", a, expression(axes, depth - 1));
            case 3: return fmt::format("({} / (abs({}) + 1.5))", a, expression(axes, depth - 1));
            case 4: return fmt::format("max({}, {})", a, expression(axes, depth - 1));
            case 5: return fmt::format("exp(-min(abs({}), 5))", a);
            case 6: return fmt::format("tanh({})", a);
            case 7: return fmt::format("sqrt(abs({}))", a);
            default: return axes.empty() ? a : fmt::format("(if {0} {1} {2} then {3} else {4})", axes[below(axes.size())], any<std::string>({"<", ">=", "=="}), 1 + below(9), a, expression(axes, depth - 1));
        }
    }

    void statement(bool last) {
        const std::string name = fmt::format("t{}", tensors_.size());
        std::string axes = dims_;
        bool position = false;
        if (!one_in(3)) {
            const char reduced = any<char>({dims_.begin(), dims_.end()});
            std::erase(axes, reduced);
            const std::string masked = one_in(6) ? fmt::format(" where {} > {}", reduced, below(4)) : "";
            position = masked.empty() && one_in(8);
            const std::string monoid = position ? "argmax" : any<std::string>({"sum", "sum", "max", "min"});
            const std::string x = position ? load(dims_) : expression(dims_, 2);    // of plain values: functions that saturate would make ties of what f64 tells apart
            if (position) body_ += fmt::format("  {}{} = {}({}) {}\n", name, cell(axes), monoid, reduced, x);
            else if (one_in(8) && masked.empty()) axes = dims_, body_ += fmt::format("  {}{} = scan {}({}) {}\n", name, cell(axes), monoid, reduced, x);
            else body_ += fmt::format("  {}{} = ({}({}{}) {}) * {}\n", name, cell(axes), monoid, reduced, masked, x, any<std::string>({"1", "0.5", "2"}));
        } else {
            if (one_in(3)) axes = subset(dims_);
            if (one_in(4)) std::ranges::shuffle(axes, random_);
            body_ += fmt::format("  {}{} = {}\n", name, cell(axes), expression(axes, 3));
        }
        tensors_.push_back({name, axes, !position});
        if (last || one_in(4)) outputs_.push_back(fmt::format("{}: {}[{}]", name, position ? "i64" : last ? any<std::string>({"f32", "f16", "bf16"}) : "f32", upper(axes)));    // what others read is not rounded
    }
    static std::string cell(const std::string& axes) { return fmt::format("[{}]", lower(axes)); }

    std::string sizes() {
        static constexpr size_t large[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 48, 64, 65, 96, 100, 127, 128, 130, 256, 300}, small[] = {1, 2, 3, 4, 5, 7, 8, 16};
        const size_t long_one = below(dims_.size());
        std::vector<std::string> out;
        for (size_t i = 0; i < dims_.size(); ++i) out.push_back(fmt::format("{} = {}", static_cast<char>('A' + i), i == long_one || (dims_.size() < 3 && one_in(3)) ? large[below(std::size(large))] : small[below(std::size(small))]));
        return fmt::format("{}", fmt::join(out, ", "));
    }

    std::string name_;
    Random& random_;
    std::string dims_, body_, drawn_;    ///< drawn: how integers are drawn
    std::vector<std::string> parameters_, outputs_;
    std::vector<Tensor> tensors_;
};

}  // namespace

std::string random_operator(const std::string& name, Random& random) { return Operator(name, random).text(); }

}  // namespace acu::property
