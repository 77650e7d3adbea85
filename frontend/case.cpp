#include "frontend/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace acu::frontend {

namespace {

constexpr int64_t largest_dim = int64_t{1} << 40;

/// What a name of an operator's signature is.
enum class Kind { Type, Value, Flag, Scalar, Tensor, Dim, Pack, Unknown };

void names_in(const Expr& e, std::vector<std::string>& dims, std::vector<std::string>& packs) {
    if (e.kind == Expr::Name) (e.pack ? packs : dims).push_back(e.text);
    for (const ExprPtr& a : e.args) names_in(*a, dims, packs);
}

struct Signature {
    explicit Signature(const OpDecl& op) {
        for (const Generic& g : op.generics) {
            kinds[g.name] = !value_generic(op, g) ? Kind::Type : g.types[0] == "bool" ? Kind::Flag : Kind::Value;
        }
        std::vector<std::string> dims, packs;
        for (const auto* list : {&op.params, &op.outputs})
            for (const Param& p : *list) {
                if (list == &op.params) kinds[p.name] = p.shape.present ? Kind::Tensor : Kind::Scalar;
                for (const ExprPtr& d : p.shape.dims) names_in(*d, dims, packs);
            }
        for (const std::string& d : dims) kinds.try_emplace(d, Kind::Dim);
        for (const std::string& p : packs) kinds.try_emplace(p, Kind::Pack);
    }
    Kind of(const std::string& name) const {
        const auto it = kinds.find(name);
        return it == kinds.end() ? Kind::Unknown : it->second;
    }
    std::vector<std::string> names() const {
        std::vector<std::string> out;
        for (const auto& [n, k] : kinds) out.push_back(n);
        return out;
    }
    std::map<std::string, Kind> kinds;
};

/// A constant: literals with + - * / and a sign.
std::optional<double> constant_of(const Expr& e) {
    if (e.kind == Expr::Integer) return static_cast<double>(e.integer);
    if (e.kind == Expr::Float) return e.number;
    if (e.kind == Expr::Boolean) return static_cast<double>(e.integer);
    std::vector<double> a;
    for (const ExprPtr& x : e.args) {
        const auto v = constant_of(*x);
        if (!v) return {};
        a.push_back(*v);
    }
    if (e.kind == Expr::Unary && e.text == "-") return -a[0];
    if (e.kind != Expr::Infix) return {};
    if (e.text == "+") return a[0] + a[1];
    if (e.text == "-") return a[0] - a[1];
    if (e.text == "*") return a[0] * a[1];
    if (e.text == "/") return a[0] / a[1];
    return {};
}

std::optional<int64_t> whole(const Expr& e) {
    const auto v = constant_of(e);
    return v && *v == static_cast<double>(static_cast<int64_t>(*v)) ? std::optional(static_cast<int64_t>(*v)) : std::nullopt;
}

struct DistributionKind {
    std::string_view name;
    size_t parameters;
};
constexpr std::array<DistributionKind, 7> distributions{{{"normal", 2}, {"uniform", 2}, {"integers", 2}, {"rows", 0}, {"spikes", 0}, {"pareto", 1}, {"angles", 0}}};

class CaseReader {
  public:
    CaseReader(const OpDecl& op, std::vector<Diagnostic>& found) : signature_(op), found_(found), op_(op) {}

    void read(const Setting& s) {
        const auto bad = [&](const char* what, const char* help) { found_.push_back({"case.value", s.values.empty() ? s.loc : s.values[0]->loc, fmt::format("`{}` {}", s.name, what), {}, help}); };
        switch (signature_.of(s.name)) {
            case Kind::Type:
                if (const auto t = s.values.size() == 1 && !s.list ? ir::type_named(s.values[0]->text) : std::nullopt) type(s, *t);
                else bad("is a type", "as in `T = bf16`");
                return;
            case Kind::Value:
                if (const auto v = s.values.size() == 1 && !s.list ? whole(*s.values[0]) : std::nullopt) out.bindings.values[s.name] = *v;
                else bad("is a compile-time value", "an integer, `true` or `false`");
                return;
            case Kind::Flag:
                if (const auto v = s.values.size() == 1 && !s.list ? whole(*s.values[0]) : std::nullopt; v && (*v == 0 || *v == 1)) out.bindings.values[s.name] = *v;
                else bad("is a truth value", "`true` or `false`");
                return;
            case Kind::Dim:
                if (const auto v = s.values.size() == 1 && !s.list ? whole(*s.values[0]) : std::nullopt; v && *v >= 0 && *v <= largest_dim) out.bindings.dims[s.name] = *v;
                else bad("is a dimension", "an integer from 0 to 2^40");
                return;
            case Kind::Pack: return pack(s);
            case Kind::Scalar:
                if (const auto v = s.values.size() == 1 && !s.list ? constant_of(*s.values[0]) : std::nullopt) out.bindings.scalars[s.name] = *v;
                else bad("is a scalar", "a number");
                return;
            case Kind::Tensor: return tensor(s);
            case Kind::Unknown:
                found_.push_back({"case.name", s.loc, fmt::format("`{}` has nothing named `{}`", op_.name, s.name), {{op_.loc, "declared here"}}, did_you_mean(s.name, signature_.names())});
        }
    }

    Settings out;

  private:
    void type(const Setting& s, ir::DType t) {
        const Generic& g = *std::ranges::find(op_.generics, s.name, &Generic::name);
        const std::vector<ir::DType> allowed = type_set(g);
        if (std::ranges::find(allowed, t) == allowed.end())
            found_.push_back({"generic.type", s.values[0]->loc, fmt::format("`{}` cannot be {}", s.name, name_of(t)), {{g.loc, "its types are declared here"}}});
        else out.bindings.types[s.name] = t;
    }

    void pack(const Setting& s) {
        int64_t product = 1;
        for (const ExprPtr& e : s.values) {
            const auto v = whole(*e);
            if (!v || *v < 0 || *v > largest_dim || (*v > 0 && product > largest_dim / *v)) {
                found_.push_back({"case.value", e->loc, fmt::format("`{}` is a list of dimensions", s.name), {}, "as in `B = [8, 128]`"});
                return;
            }
            product *= *v;
        }
        out.bindings.dims[s.name] = product;
    }

    void tensor(const Setting& s) {
        Distribution d{"list"};
        const Expr* call = !s.list && s.values.size() == 1 && s.values[0]->kind == Expr::Call ? s.values[0].get() : nullptr;
        const auto known = call ? std::ranges::find(distributions, call->text, &DistributionKind::name) : distributions.end();
        if (!s.list && known == distributions.end()) {
            std::vector<std::string> names;
            for (const auto& k : distributions) names.emplace_back(k.name);
            found_.push_back({"case.distribution", s.values[0]->loc, fmt::format("`{}` is a tensor: it is drawn from a distribution, or is a list of integers", s.name), {},
                              call && !nearest(call->text, names).empty() ? did_you_mean(call->text, names) : fmt::format("one of {}", fmt::join(names, ", "))});
            return;
        }
        if (call) d.kind = call->text;
        d.loc = s.values.empty() ? s.loc : s.values[0]->loc;
        for (const ExprPtr& e : call ? call->args : s.values) {
            const auto v = constant_of(*e);
            if (!v) {
                found_.push_back({"case.value", e->loc, "a number is expected"});
                return;
            }
            d.parameters.push_back(*v);
            d.list.push_back(static_cast<int64_t>(*v));
        }
        if (call && d.parameters.size() != known->parameters) {
            found_.push_back({"case.distribution", call->loc, fmt::format("`{}` takes {} numbers, but {} are given", d.kind, known->parameters, d.parameters.size())});
            return;
        }
        if ((d.kind == "integers" || d.kind == "uniform") && d.parameters[0] > d.parameters[1]) {
            found_.push_back({"case.distribution", call->loc, fmt::format("the range of `{}` is empty", d.kind), {}, "the lower end comes first"});
            return;
        }
        out.inputs[s.name] = std::move(d);
    }

    Signature signature_;
    std::vector<Diagnostic>& found_;
    const OpDecl& op_;
};

Diagnostic bad_set(const std::string& text, std::string why, std::string help = {}) { return {"set.value", {}, fmt::format("`--set {}`: {}", text, why), {}, std::move(help), Exit::Usage}; }

template <class T>
std::optional<T> parse_number(const std::string& s) {
    T v{};
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
    return error == std::errc{} && end == s.data() + s.size() ? std::optional(v) : std::nullopt;
}

Status apply_set(const std::string& text, const Signature& signature, const OpDecl& op, Settings& settings) {
    const size_t eq = text.find('=');
    if (eq == std::string::npos || eq == 0) return bad_set(text, "`NAME=VALUE` is expected", "as in `--set M=4096,T=bf16`");
    const std::string name = text.substr(0, eq), value = text.substr(eq + 1);
    Bindings& b = settings.bindings;
    switch (signature.of(name)) {
        case Kind::Type: {
            const auto t = ir::type_named(value);
            if (!t) return bad_set(text, fmt::format("`{}` is a type, and no type `{}` is known", name, value));
            b.types[name] = *t;
            return ok();
        }
        case Kind::Value: {
            const auto v = value == "true" ? std::optional<int64_t>(1) : value == "false" ? std::optional<int64_t>(0) : parse_number<int64_t>(value);
            if (!v) return bad_set(text, fmt::format("`{}` is a compile-time value: an integer, `true` or `false`", name));
            b.values[name] = *v;
            return ok();
        }
        case Kind::Flag: {
            const bool yes = value == "true" || value == "1";
            if (!yes && value != "false" && value != "0") return bad_set(text, fmt::format("`{}` is a truth value: `true` or `false`", name));
            b.values[name] = yes;
            return ok();
        }
        case Kind::Dim:
        case Kind::Pack: {
            const auto v = parse_number<int64_t>(value);
            if (!v || *v < 0 || *v > largest_dim) return bad_set(text, fmt::format("`{}` is a dimension: an integer from 0 to 2^40", name));
            b.dims[name] = *v;
            return ok();
        }
        case Kind::Scalar: {
            const auto v = parse_number<double>(value);
            if (!v) return bad_set(text, fmt::format("`{}` is a scalar: a number", name));
            b.scalars[name] = *v;
            return ok();
        }
        case Kind::Tensor: return bad_set(text, fmt::format("`{}` is a tensor", name), fmt::format("give its values with `--in {}=FILE.npy`", name));
        case Kind::Unknown: break;
    }
    return bad_set(text, fmt::format("the operator `{}` has nothing named `{}`", op.name, name),
                   nearest(name, signature.names()).empty() ? fmt::format("it has {}", fmt::join(signature.names(), ", ")) : did_you_mean(name, signature.names()));
}

}  // namespace

Settings settings_of(const CaseDecl& c, const OpDecl& op, std::vector<Diagnostic>& found) {
    CaseReader reader(op, found);
    std::map<std::string, Loc> seen;
    for (const Setting& s : c.settings) {
        if (const auto [it, fresh] = seen.try_emplace(s.name, s.loc); !fresh) found.push_back({"name.twice", s.loc, fmt::format("`{}` is set twice", s.name), {{it->second, "first here"}}});
        else reader.read(s);
    }
    return std::move(reader.out);
}

Status apply_sets(const std::vector<std::string>& sets, const OpDecl& op, Settings& settings) {
    const Signature signature(op);
    for (const std::string& list : sets)
        for (size_t from = 0; from <= list.size();) {
            const size_t comma = std::min(list.find(',', from), list.size());
            if (const Status s = apply_set(list.substr(from, comma - from), signature, op, settings); !s) return s;
            from = comma + 1;
        }
    return ok();
}

}  // namespace acu::frontend
