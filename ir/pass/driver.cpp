#include "ir/pass/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "ir/pass/edit.h"

namespace acu::ir::pass {
namespace {

// ---- resolve

std::vector<std::string> names_of_kind(const Program& p, SiteKind kind) {
    std::vector<std::string> out;
    if (kind == SiteKind::Buffer)
        for (const Decl& d : p.decls) out.push_back(d.name);
    for_each_place(p, [&](const Place& x) {
        const std::string role = x.role.empty() ? "" : x.role + "/";
        const auto add = [&](const std::string& n) {
            out.push_back(n);
            if (!role.empty()) out.push_back(role + n);
        };
        if (const Block* b = as_block(x.stmt)) {
            if (kind == SiteKind::Statement) add(b->label);
            if (kind == SiteKind::Axis)
                for (const Axis& a : b->axes) out.push_back(a.name);
        }
        if (const Loop* l = as_loop(x.stmt)) {
            if (kind == SiteKind::Loop) add(l->var);
            if (kind == SiteKind::Buffer)
                for (const Decl& d : l->allocs) out.push_back(d.name);
        }
        if (const auto* r = std::get_if<Roles>(&x.stmt->node); r && kind == SiteKind::Role)
            for (const Role& role_of : r->roles) out.push_back(role_of.name);
    });
    return out;
}

std::optional<Failure> resolve(const Program& p, const Pass& pass, const Step& step) {
    const auto count = static_cast<int>(step.sites.size());
    if (count < pass.sites.least || count > pass.sites.most)
        return Failure{Stage::Resolve, {"site.count", step.loc, fmt::format("`{}` takes {} name{}, but {} {} given", pass.name, pass.sites.least, pass.sites.least == 1 ? "" : "s", count, count == 1 ? "is" : "are"), {}, std::string(pass.doc)}};
    for (size_t i = 0; i < step.sites.size(); ++i) {
        const SiteKind kind = pass.sites.kinds[std::min(i, pass.sites.kinds.size() - 1)];
        const std::vector<std::string> known = names_of_kind(p, kind);
        if (std::ranges::find(known, step.sites[i]) != known.end()) continue;
        return Failure{Stage::Resolve, {"site.unknown", step.loc, fmt::format("`{}`: no {} is named `{}`", pass.name, name_of(kind), step.sites[i]), {}, did_you_mean(step.sites[i], known)}};
    }
    return {};
}

// ---- decisions

/// What a statement says by itself: a block whole, a loop or a condition without its body.
std::string head_of(const Stmt& s) {
    return match(
        s, [&](const Block&) { return print(s); },
        [&](const Loop& l) {
            Loop n = l;
            n.body.clear();
            return print(make_stmt({}, std::move(n)));
        },
        [&](const If& i) { return print(make_stmt({}, If{i.condition, {}, {}})); },
        [&](const Roles& r) {
            Roles n = r;
            for (Role& role : n.roles) role.body.clear();
            return print(make_stmt({}, std::move(n)));
        },
        [&](const Sync&) { return print(s); });
}

/// Names a statement across programs: blocks by label, loops by role and variable, the rest by what they say.
std::string identity_of(const Place& x, const std::string& head) {
    if (const Block* b = as_block(x.stmt)) return "block " + b->label;
    if (const Loop* l = as_loop(x.stmt)) return "loop " + x.role + "/" + l->var;
    return head;
}

struct Known {
    std::string head;
    std::vector<int> decisions;
};

class Stamp {
  public:
    Stamp(const Program& before, const std::vector<Lineage>& lineage, int id) : id_(id) {
        for_each_place(before, [&](const Place& x) {
            const std::string head = head_of(x.stmt);
            known_.emplace(identity_of(x, head), Known{head, x.stmt->decisions});
        });
        for (const Lineage& l : lineage) from_.emplace(l.to, l.from);
    }

    Body body(const Body& stmts, const std::string& role) const {
        Body out;
        for (const Stmt& s : stmts) out.push_back(statement(s, role));
        return out;
    }

  private:
    Stmt statement(const Stmt& s, const std::string& role) const {
        Stmt inner;
        if (const auto* r = std::get_if<Roles>(&s->node)) {
            Roles n = *r;
            for (Role& x : n.roles) x.body = body(x.body, x.name);
            inner = with_node(s, std::move(n));
        } else inner = map_bodies(s, [&](const Body& b) { return body(b, role); });
        std::vector<int> decisions = decisions_of(s, role);
        if (decisions == inner->decisions) return inner;
        auto node = std::make_shared<StmtNode>(*inner);
        node->decisions = std::move(decisions);
        return node;
    }

    std::vector<int> decisions_of(const Stmt& s, const std::string& role) const {
        const std::string head = head_of(s);
        const Known* old = find(identity_of({s, {}, role}, head));
        if (old && old->head == head) return old->decisions;
        if (!old)
            if (const Block* b = as_block(s)) old = ancestor(b->label);
        std::vector<int> out = old ? old->decisions : std::vector<int>{};
        if (out.empty() || out.back() != id_) out.push_back(id_);
        return out;
    }

    const Known* find(const std::string& identity) const {
        const auto it = known_.find(identity);
        return it == known_.end() ? nullptr : &it->second;
    }
    const Known* ancestor(const std::string& label) const {
        const auto it = from_.find(label);
        return it == from_.end() ? nullptr : find("block " + it->second);
    }

    int id_;
    std::map<std::string, Known> known_;
    std::map<std::string, std::string> from_;
};

std::optional<Failure> broken(const Program& p, const Step& step) {
    const std::vector<Violation> found = verify(p);
    if (found.empty()) return {};
    return Failure{Stage::Verify, {"verify." + found[0].rule, step.loc, fmt::format("after `{}`: {}", step.pass, found[0].what), {}, "this is a fault of the compiler: the pass accepted what it then broke"}};
}

}  // namespace

std::variant<Applied, Failure> apply_step(const Program& p, int id, const Step& step, const Context& context, Observer* observer, const Pass* pass) {
    if (!pass) pass = pass_named(step.pass);
    if (!pass) {
        std::vector<std::string> known;
        for (const Pass& x : all_passes()) known.emplace_back(x.name);
        return Failure{Stage::Resolve, {"pass.unknown", step.loc, fmt::format("no pass `{}` is known", step.pass), {}, did_you_mean(step.pass, known)}};
    }
    if (auto f = resolve(p, *pass, step)) return *f;
    if (observer) observer->before(id, step, p);
    const auto start = std::chrono::steady_clock::now();
    auto result = pass->run({p, step.sites}, step.args, context);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (auto* f = std::get_if<Failure>(&result)) {
        if (!f->why.loc) f->why.loc = step.loc;
        return *f;
    }
    auto& done = std::get<Rewrite>(result);
    Applied out{std::move(done.program), std::move(done.lineage), true};
    if (auto f = broken(out.program, step)) return *f;
    out.effect = print(out.program) != print(p);
    out.program.body = Stamp(p, out.lineage, id).body(out.program.body, "");
    if (observer) observer->after(id, step, out.program, seconds);
    return out;
}

Replayed replay(const Program& start, const std::vector<Step>& steps, const Context& context, Observer* observer) {
    Replayed r{start, {}, {}, 0};
    for (size_t i = 0; i < steps.size(); ++i) {
        auto result = apply_step(r.program, static_cast<int>(i) + 1, steps[i], context, observer);
        if (auto* f = std::get_if<Failure>(&result)) {
            r.failure = std::move(*f);
            r.failed_at = i;
            return r;
        }
        r.steps.push_back(std::move(std::get<Applied>(result)));
        r.program = r.steps.back().program;
    }
    return r;
}

}  // namespace acu::ir::pass
