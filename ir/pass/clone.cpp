#include "ir/pass/clone.h"

#include <algorithm>

namespace acu::ir::pass {

/// `pre`, `full`, `0`, `12`, each perhaps with a digit that made it unique.
static bool is_clone_suffix(std::string part) {
    while (!part.empty() && std::isdigit(static_cast<unsigned char>(part.back()))) part.pop_back();
    return part.empty() || part == "pre" || part == "full";
}

static bool belongs(const std::string& label, const std::string& own) {
    if (label == own) return true;
    if (!label.starts_with(own + ".")) return false;
    for (size_t at = own.size() + 1; at <= label.size();) {
        const size_t dot = std::min(label.find('.', at), label.size());
        if (dot == at || !is_clone_suffix(label.substr(at, dot - at))) return false;
        at = dot + 1;
    }
    return true;
}

std::vector<Place> family(const Program& p, const std::string& name) {
    const size_t slash = name.rfind('/');
    const std::string role = slash == std::string::npos ? "" : name.substr(0, slash), own = slash == std::string::npos ? name : name.substr(slash + 1);
    std::vector<Place> out;
    for_each_place(p, [&](const Place& x) {
        const Block* b = as_block(x.stmt);
        if (b && belongs(b->label, own) && (role.empty() || x.role == role)) out.push_back(x);
    });
    if (out.empty()) out.push_back(find_block(p, name));
    return out;
}

/// Another name for the loop, also where it is the key of a ring inside.
static Stmt renamed(const Stmt& s, const std::string& from, const std::string& to) {
    const Stmt inner = map_bodies(s, [&](const Body& body) {
        Body out;
        for (const Stmt& x : body) out.push_back(renamed(x, from, to));
        return out;
    });
    const Loop* l = as_loop(inner);
    if (!l) return inner;
    Loop n = *l;
    if (n.var == from) n.var = to;
    for (Decl& d : n.allocs) std::ranges::replace(d.ring.keys, from, to);
    return with_node(inner, std::move(n));
}

Stmt clone(const Program& p, const Stmt& s, const std::string& suffix, bool loops, std::vector<Lineage>& lineage) {
    if (const Block* b = as_block(s)) {
        Block n = *b;
        n.label = unique_name(p, b->label + suffix);
        lineage.push_back({b->label, n.label, Part::Clone});
        return with_node(s, std::move(n));
    }
    const Stmt inner = map_bodies(s, [&](const Body& body) {
        Body out;
        for (const Stmt& x : body) out.push_back(clone(p, x, suffix, loops, lineage));
        return out;
    });
    const Loop* l = as_loop(inner);
    if (!l || !loops) return inner;
    const std::string var = unique_name(p, l->var + suffix);
    return renamed(substitute(inner, {{l->var, name(var)}}), l->var, var);
}

namespace {

class Copier {
  public:
    Copier(const Program& p, const std::string& suffix, std::vector<Lineage>& lineage) : p_(p), suffix_(suffix), lineage_(lineage) {}

    Stmt copy(const Stmt& s) const {
        if (as_block(s)) return labelled(s);
        const Stmt inner = map_bodies(s, [&](const Body& body) {
            Body out;
            for (const Stmt& x : body) out.push_back(copy(x));
            return out;
        });
        return as_loop(inner) ? own_names(inner) : inner;
    }

  private:
    std::string fresh(const std::string& n) const { return unique_name(p_, n + suffix_); }

    Stmt labelled(const Stmt& s) const {
        Block b = *as_block(s);
        lineage_.push_back({b.label, fresh(b.label), Part::Clone});
        b.label = lineage_.back().to;
        return with_node(s, std::move(b));
    }

    /// Loop by loop, since an axis or a loop beside it may have the same name.
    Stmt own_names(const Stmt& s) const {
        IndexMap words{{as_loop(s)->var, name(fresh(as_loop(s)->var))}};
        std::map<std::string, std::string> buffers;
        for (const Let& x : as_loop(s)->lets) words[x.name] = name(fresh(x.name));
        for (const Decl& d : as_loop(s)->allocs) buffers[d.name] = fresh(d.name);
        const auto index = [&](const Index& e) { return rename_tensors(ir::substitute(e, words), buffers); };
        const auto value = [&](const Value& v) { return rename_tensors(ir::substitute(v, words), buffers); };
        Loop l = *as_loop(map_expressions(s, value, index));
        lineage_.push_back({l.var, words.at(l.var)->name, Part::Clone});
        l.var = lineage_.back().to;
        for (Let& x : l.lets) x.name = words.at(x.name)->name;
        for (Decl& d : l.allocs) d.name = buffers.at(d.name);
        l.body = edit(l.body, [&](const Stmt& x) { return as_block(x) ? std::optional(Body{writing(x, buffers)}) : std::nullopt; });
        return with_node(s, std::move(l));
    }

    static Stmt writing(const Stmt& s, const std::map<std::string, std::string>& buffers) {
        Block b = *as_block(s);
        for (Access& o : b.outs)
            if (const auto it = buffers.find(o.tensor); it != buffers.end()) o.tensor = it->second;
        return with_node(s, std::move(b));
    }

    const Program& p_;
    const std::string& suffix_;
    std::vector<Lineage>& lineage_;
};

}  // namespace

Stmt copy_apart(const Program& p, const Stmt& s, const std::string& suffix, std::vector<Lineage>& lineage) { return Copier(p, suffix, lineage).copy(s); }

static void loads_in(const Value& v, std::set<std::string>& out) {
    visit(v, [&](const ValueNode& n) {
        if (n.op == Op::Load) out.insert(n.name);
        for (const Index& e : n.subscripts) loaded_tensors(e, out);
    });
}

std::set<std::string> control_reads(const Body& body) {
    std::set<std::string> out;
    for (const Stmt& s : body) {
        if (const auto* i = std::get_if<If>(&s->node)) loads_in(i->condition, out);
        if (const Loop* l = as_loop(s)) {
            loaded_tensors(l->extent, out);
            for (const Let& x : l->lets) loaded_tensors(x.value, out);
            for (const Decl& d : l->allocs)
                for (const Window& w : d.dims) loaded_tensors(w.origin, out), loaded_tensors(w.size, out);
        }
        for (const Body* inner : bodies_of(s)) out.merge(control_reads(*inner));
    }
    return out;
}

}  // namespace acu::ir::pass
