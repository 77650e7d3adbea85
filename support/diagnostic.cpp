#include "support/diagnostic.h"

#include <algorithm>

namespace acu {

/// Insertions, deletions, replacements and exchanges of neighbours.
static size_t edit_distance(const std::string& a, const std::string& b) {
    std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i)
        for (size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[a.size()][b.size()];
}

std::string nearest(const std::string& name, const std::vector<std::string>& known) {
    std::string best;
    size_t distance = std::max<size_t>(1, name.size() / 3) + 1;
    for (const std::string& k : known)
        if (k == name) return "";
    for (const std::string& k : known)
        if (const size_t d = edit_distance(name, k); d < distance) best = k, distance = d;
    return best;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
    const std::string best = nearest(name, known);
    return best.empty() ? "" : "did you mean `" + best + "`?";
}

}  // namespace acu
