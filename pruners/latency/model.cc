#include "parsimony/pruners/latency/model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/weights.h"
#include "parsimony/pruners/layers.h"

namespace parsimony {
namespace {

constexpr size_t kMostLines = 2;

template <typename T>
void write(std::ostream& out, const T& value) {
  out << value << ' ';
}

template <typename T>
void write(std::ostream& out, const std::vector<T>& values) {
  for (const T& value : values) out << value << ' ';
}

class Cutter {
 public:
  Cutter(const Graph& graph, const Facts& facts, const Coupling& coupling)
      : graph_(graph), facts_(facts), coupling_(coupling), layers_(graph) {}

  std::vector<Subgraph> run() {
    subgraph_of_.assign(graph_.nodes.size(), kNone);
    constant_ = depends_on_weights_only(graph_, facts_.computed);
    for (const NodeId n : graph_.nodes.ids()) place(n);
    for (Subgraph& subgraph : subgraphs_) {
      if (subgraph.dim_classes.size() == 2 &&
          share_a_group(subgraph.dim_classes[0], subgraph.dim_classes[1])) {
        const auto size = [&](size_t i) {
          return coupling_.channels(subgraph.dim_classes[i]).size();
        };
        subgraph.dim_classes = {size(1) > size(0) ? subgraph.dim_classes[1]
                                                  : subgraph.dim_classes[0]};
      }
      describe(subgraph);
    }
    return std::move(subgraphs_);
  }

 private:
  bool is_constant(ValueId v) const { return v == kNone || constant_[v]; }

  void place(NodeId id) {
    const Node& node = graph_.node(id);
    const auto constant = [&](ValueId v) { return is_constant(v); };
    if (node.has_subgraph || node.body != kNone) return;  // it may run any number of times
    if (node.inputs.empty() || std::ranges::all_of(node.outputs, constant)) {
      return;
    }
    const std::vector<DimClassId> dim_classes = lines_of(node);
    const int host = host_of(id);
    if (host != kNone) {
      Subgraph& subgraph = subgraphs_[host];
      std::vector<DimClassId> both = united(subgraph.dim_classes, dim_classes);
      if (both.size() <= kMostLines) {
        subgraph.dim_classes = std::move(both);
        subgraph.nodes.push_back(id);
        subgraph_of_[id] = host;
        return;
      }
    }
    subgraph_of_[id] = static_cast<int>(subgraphs_.size());
    subgraphs_.push_back({{id}, longest(dim_classes), {}, {}});
  }

  /// The subgraph that `id` may join: that of the operand computed last.
  int host_of(NodeId id) const {
    if (layers_.contains(id)) return kNone;
    NodeId last;
    for (ValueId v : graph_.node(id).inputs) {
      if (!is_constant(v)) last = std::max(last, graph_.value(v).producer);
    }
    return last == kNone ? kNone : subgraph_of_[last];
  }

  std::vector<DimClassId> lines_of(const Node& node) const {
    std::vector<DimClassId> dim_classes;
    const auto add = [&](ValueId v) {
      if (v == kNone || facts_.computed[v]) return;
      const auto& shape = facts_.shapes[v];
      for (int d = 0; shape && d < std::ssize(*shape); ++d) {
        const DimClassId dim_class = coupling_.dim_class_of(v, d);
        if (dim_class != kNone && !coupling_.channels(dim_class).empty())
          dim_classes.push_back(dim_class);
      }
    };
    for (ValueId v : node.inputs) add(v);
    for (ValueId v : node.outputs) add(v);
    return united(dim_classes, {});
  }

  static std::vector<DimClassId> united(std::vector<DimClassId> a,
                                        const std::vector<DimClassId>& b) {
    a.insert(a.end(), b.begin(), b.end());
    sort_unique(a);
    return a;
  }

  bool share_a_group(DimClassId a, DimClassId b) const {
    std::set<GroupId> groups;
    for (const ChannelId& channel : coupling_.channels(a)) groups.insert(channel.group);
    groups.erase(kNone);
    const auto of_b = coupling_.channels(b);
    return std::ranges::any_of(
        of_b, [&](const ChannelId& channel) { return groups.contains(channel.group); });
  }

  std::vector<DimClassId> longest(std::vector<DimClassId> dim_classes) const {
    std::ranges::stable_sort(dim_classes, [&](DimClassId a, DimClassId b) {
      return coupling_.channels(a).size() > coupling_.channels(b).size();
    });
    if (dim_classes.size() > kMostLines) dim_classes.resize(kMostLines);
    std::ranges::sort(dim_classes);
    return dim_classes;
  }

  /// "1x16@0x32x32": sizes, and which of the subgraph's axes they lie along.
  void write_value(std::ostream& out, ValueId v, const Subgraph& subgraph) const {
    if (v == kNone) {
      out << "- ";
      return;
    }
    const auto& shape = facts_.shapes[v];
    if (!shape) {
      out << "? ";
      return;
    }
    out << (graph_.value(v).weight != kNone ? "w" : "v");
    for (size_t d = 0; d < shape->size(); ++d) {
      out << (d == 0 ? "" : "x") << (*shape)[d];
      const DimClassId dim_class = coupling_.dim_class_of(v, static_cast<int>(d));
      const auto at = std::ranges::find(subgraph.dim_classes, dim_class);
      if (at != subgraph.dim_classes.end()) out << '@' << at - subgraph.dim_classes.begin();
    }
    out << ' ';
  }

  void describe(Subgraph& subgraph) const {
    std::ostringstream key;
    std::string what;
    for (NodeId id : subgraph.nodes) {
      const Node& node = graph_.node(id);
      key << node.domain << '.' << node.op << ' ' << node.opset << ' ';
      for (const auto& [name, value] : node.attributes) {
        key << name << '=';
        std::visit([&](const auto& held) { write(key, held); }, value);
      }
      for (ValueId v : node.inputs) {
        write_value(key, v, subgraph);
        // The key also says which of the subgraph's own results is read.
        if (v == kNone || graph_.value(v).producer == kNone) continue;
        const auto from = std::ranges::find(subgraph.nodes, graph_.value(v).producer);
        if (from != subgraph.nodes.end()) key << '#' << from - subgraph.nodes.begin() << ' ';
      }
      key << "-> ";
      for (ValueId v : node.outputs) write_value(key, v, subgraph);
      key << "; ";
      what += (what.empty() ? "" : ", ") + node.op + matrix_of(id);
    }
    subgraph.key = key.str();
    subgraph.what = what;
  }

  std::string matrix_of(NodeId id) const {
    if (!layers_.contains(id)) return {};
    const std::vector<ValueId> weights = layers_.weights(id);
    if (weights.empty()) return {};
    std::string text;
    for (int64_t dim : graph_.weight_of(weights[0]).dims) {
      text += (text.empty() ? " " : "x") + std::to_string(dim);
    }
    return text;
  }

  const Graph& graph_;
  const Facts& facts_;
  const Coupling& coupling_;
  Layers layers_;
  IdVector<ValueId, bool> constant_;
  IdVector<NodeId, int> subgraph_of_;
  std::vector<Subgraph> subgraphs_;
};

}  // namespace

std::vector<Subgraph> subgraphs_of(const Graph& graph, const Facts& facts,
                                   const Coupling& coupling) {
  return Cutter(graph, facts, coupling).run();
}

namespace {

constexpr double kFlat = 0.03;

/// The place of a width between its neighbours: index of the lower and share of the upper.
struct Interpolation {
  size_t lower = 0;
  size_t upper = 0;
  double share = 0;
};

Interpolation interpolation_of(const std::vector<int>& widths, double width) {
  const auto above =
      std::ranges::upper_bound(widths, width, [](double value, int each) { return value < each; });
  if (above == widths.begin()) return {0, 0, 0};
  const size_t lower = static_cast<size_t>(above - widths.begin()) - 1;
  if (above == widths.end()) return {lower, lower, 0};
  const double from = widths[lower];
  return {lower, lower + 1, (width - from) / (*above - from)};
}

bool ascends(const std::vector<int>& widths) {
  return !widths.empty() && widths.front() >= 1 &&
         std::ranges::adjacent_find(widths, std::greater_equal<>()) == widths.end();
}

}  // namespace

double LatencyTable::at(double width_x, double width_y) const {
  const Interpolation i = interpolation_of(x, width_x);
  const Interpolation j = interpolation_of(y, width_y);
  const auto along_y = [&](size_t row) {
    const double low = seconds[row * y.size() + j.lower];
    return low + j.share * (seconds[row * y.size() + j.upper] - low);
  };
  const double low = along_y(i.lower);
  return low + i.share * (along_y(i.upper) - low);
}

bool LatencyTable::is_sound() const {
  return ascends(x) && ascends(y) && seconds.size() == x.size() * y.size() &&
         std::ranges::all_of(seconds, [](double s) { return std::isfinite(s) && s >= 0; });
}

std::vector<int> first_widths(int size) {
  std::vector<int> widths = {1, size / 4, size / 2, size * 3 / 4, size};
  sort_unique(widths);
  if (widths.front() == 0) widths.erase(widths.begin());
  return widths;
}

int next_width(std::span<const int> widths, std::span<const double> seconds) {
  if (seconds.empty()) return 0;
  double most = kFlat * *std::ranges::max_element(seconds);
  int found = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const double change = std::abs(seconds[i + 1] - seconds[i]);
    if (widths[i + 1] - widths[i] < 2 || change <= most) continue;
    most = change;
    found = (widths[i] + widths[i + 1]) / 2;
  }
  return found;
}

LatencyModel::LatencyModel(const Coupling& coupling, std::span<const Subgraph> subgraphs,
                           const LatencyTables& tables)
    : of_group_(coupling.groups.size()) {
  std::map<std::pair<std::string, std::vector<DimClassId>>, size_t> known;
  for (const Subgraph& subgraph : subgraphs) {
    const auto table = tables.find(subgraph.key);
    if (table == tables.end()) continue;
    const auto [it, fresh] = known.try_emplace({subgraph.key, subgraph.dim_classes}, terms_.size());
    if (!fresh) {
      terms_[it->second].times += 1;
      continue;
    }
    Term term{table->second, {}, 1};
    for (const DimClassId dim_class : subgraph.dim_classes) {
      Width width;
      std::map<GroupId, double> counts;
      for (const ChannelId& channel : coupling.channels(dim_class)) {
        if (channel.group == kNone) {
          width.pinned += 1;
        } else {
          counts[channel.group] += 1;
        }
      }
      for (const auto& [group, count] : counts) {
        width.groups.emplace_back(group, count / coupling.groups[group].size);
        auto& uses = of_group_[group];
        if (uses.empty() || uses.back() != terms_.size()) uses.push_back(terms_.size());
      }
      term.widths.push_back(std::move(width));
    }
    terms_.push_back(std::move(term));
  }
}

double LatencyModel::width_of(const Width& width, const Kept& kept) {
  double sum = width.pinned;
  for (const auto& [group, each] : width.groups) sum += each * kept.of(group);
  return sum;
}

double LatencyModel::seconds_of(const Term& term, const Kept& kept) {
  const double x = term.widths.empty() ? 1 : width_of(term.widths[0], kept);
  const double y = term.widths.size() < 2 ? 1 : width_of(term.widths[1], kept);
  return term.times * term.table.at(x, y);
}

double LatencyModel::seconds(const PerGroup<int>& kept) const {
  double sum = 0;
  for (const Term& term : terms_) sum += seconds_of(term, {kept});
  return sum;
}

double LatencyModel::change(const PerGroup<int>& kept, std::span<const GroupId> groups,
                            int count) const {
  const auto touched = [&](size_t t, size_t before) {
    return std::ranges::any_of(groups.first(before),
                               [&](GroupId g) { return contains(of_group_[g], t); });
  };
  double sum = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const size_t t : of_group_[groups[g]]) {
      if (touched(t, g)) continue;
      sum += seconds_of(terms_[t], {kept, groups, count}) - seconds_of(terms_[t], {kept});
    }
  }
  return sum;
}

namespace {

constexpr int kLargestMultiple = 64;
constexpr double kLeap = 1.05;  // beyond what the work grows by, and beyond noise

/// Returns the largest power of two that divides one of the numbers in [first, last].
int most_even(int first, int last) {
  int most = 1;
  for (int width = first; width <= last; ++width) {
    const auto bits = static_cast<uint32_t>(width);
    most = std::max(most, static_cast<int>(bits & (~bits + 1)));
  }
  return most;
}

/// Do widths in the same block take the same time?
bool even_within(int multiple, std::span<const int> widths, std::span<const double> seconds) {
  for (size_t i = 0; i < widths.size(); ++i) {
    for (size_t j = i + 1; j < widths.size(); ++j) {
      const bool together = (widths[i] - 1) / multiple == (widths[j] - 1) / multiple;
      if (together && seconds[j] > kLeap * seconds[i]) return false;
    }
  }
  return true;
}

/// The times along one axis, where the other one is whole.
std::vector<double> times_along(const LatencyTable& table, size_t axis) {
  std::vector<double> times;
  const size_t columns = table.y.size();
  if (axis == 0) {
    for (size_t i = 0; i < table.x.size(); ++i) {
      times.push_back(table.seconds[i * columns + columns - 1]);
    }
  } else {
    const auto last = table.seconds.end() - static_cast<std::ptrdiff_t>(columns);
    times.assign(last, table.seconds.end());
  }
  return times;
}

/// The group whose channels alone a dim class has, and how many indices each of them has.
struct Owner {
  GroupId group = kNone;
  int indices = 1;
};

Owner owner_of(const Coupling& coupling, DimClassId dim_class) {
  const auto channels = coupling.channels(dim_class);
  if (channels.empty()) return {};
  const GroupId group = channels.front().group;
  const bool alone =
      std::ranges::all_of(channels, [&](const ChannelId& c) { return c.group == group; });
  if (group == kNone || !alone) return {};
  return {group, static_cast<int>(std::ssize(channels)) / coupling.groups[group].size};
}

}  // namespace

int multiple_of_steps(std::span<const int> widths, std::span<const double> seconds) {
  constexpr int kClose = 4;  // indices between two widths that show where a step is
  int multiple = 0;
  for (size_t i = 1; i < widths.size(); ++i) {
    const int before = widths[i - 1];
    const bool close = widths[i] - before <= kClose && before > 1;
    const double grown = static_cast<double>(widths[i]) / before;
    if (!close || seconds[i] < seconds[i - 1] * grown * kLeap) continue;
    const int step = std::min(most_even(before, widths[i] - 1), kLargestMultiple);
    multiple = multiple == 0 ? step : std::min(multiple, step);
  }
  while (multiple > 1 && !even_within(multiple, widths, seconds)) multiple /= 2;
  return multiple;
}

PerGroup<int> multiples_of(const Coupling& coupling, std::span<const Subgraph> subgraphs,
                           const LatencyTables& tables) {
  PerGroup<int> multiples(coupling.groups.size(), 0);
  for (const Subgraph& subgraph : subgraphs) {
    const auto table = tables.find(subgraph.key);
    if (table == tables.end() || !table->second.is_sound()) continue;
    for (size_t axis = 0; axis < subgraph.dim_classes.size(); ++axis) {
      const Owner owner = owner_of(coupling, subgraph.dim_classes[axis]);
      if (owner.group == kNone || owner.indices < 1) continue;
      const std::vector<int>& widths = axis == 0 ? table->second.x : table->second.y;
      const int indices = multiple_of_steps(widths, times_along(table->second, axis));
      if (indices == 0) continue;
      int& multiple = multiples[owner.group];
      multiple = std::max(multiple, indices / std::gcd(indices, owner.indices));
    }
  }
  for (const GroupId g : multiples.ids()) {
    while (multiples[g] > 1 && coupling.groups[g].size < 2 * multiples[g]) multiples[g] /= 2;
  }
  return multiples;
}

}  // namespace parsimony
