#include "support/diagnostic.h"

#include <algorithm>
#include <numeric>

namespace acu {

static size_t edit_distance(const std::string& a, const std::string& b) {
    std::vector<size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
            diagonal = above;
        }
    }
    return row[b.size()];
}

std::string nearest(const std::string& name, const std::vector<std::string>& known) {
    std::string best;
    size_t distance = std::max<size_t>(1, name.size() / 3) + 1;
    for (const std::string& k : known)
        if (const size_t d = edit_distance(name, k); d < distance) best = k, distance = d;
    return best;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
    const std::string best = nearest(name, known);
    return best.empty() ? "" : "did you mean `" + best + "`?";
}

}  // namespace acu
