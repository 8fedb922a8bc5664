#include "parsimony/report/scales.h"

#include "parsimony/report/parts_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

constexpr size_t kMostGroups = 3;

std::string number_text(double value) { return formatted("%.6g", value); }

std::string place_text(const ScaleRow& row) {
  const std::string name = row.what.empty() ? "constant" : printable(row.what);
  return (row.attribute ? "attribute " + name : name) + " of " + printable(row.node);
}

}  // namespace

ScaleRow row_of(const Graph& graph, const Coupling& coupling, const Scale& scale) {
  ScaleRow row;
  row.node = label_of(graph, graph.node(scale.node));
  row.attribute = scale.input < 0;
  row.what = row.attribute ? scale.what : scale.tensor;
  row.value = scale.value.number(0);
  row.encodes = formula(scale, scale.size);
  row.size = scale.size;
  for (const GroupId g : scale.groups) {
    row.groups.push_back(coupling.groups[g].id);
  }
  return row;
}

ScaleRow row_of(const Graph& graph, const Coupling& coupling, const CutScale& cut, bool patched) {
  ScaleRow row = row_of(graph, coupling, cut.scale);
  row.cut = {cut.kept, cut.would_be.number(0), patched};
  return row;
}

void describe(JsonWriter& way, const ScaleRow& row) {
  way("node", row.node)(row.attribute ? "attribute" : "tensor", row.what)("value", row.value);
  way("encodes", row.encodes)("size", row.size)("groups", row.groups);
  if (!row.cut) return;
  way("kept", row.cut->kept)("would_be", row.cut->would_be)("patched", row.cut->patched);
}

std::string scales_text(const std::vector<ScaleRow>& rows) {
  if (rows.empty()) return "";
  using enum Table::Align;
  const bool cut = rows.front().cut.has_value();
  std::vector<std::string> head = {"scale", "value", "encodes", "of groups"};
  std::vector<Table::Align> align = {kLeft, kRight, kLeft, kLeft};
  if (cut) {
    head.insert(head.end(), {"kept", "would be"});
    align.insert(align.end(), {kRight, kRight});
  }
  Table table(head, align);
  for (const ScaleRow& row : rows) {
    std::vector<std::string> cells = {place_text(row), number_text(row.value), row.encodes,
                                      listed(row.groups, kMostGroups)};
    if (cut) {
      cells.push_back(std::to_string(row.cut->kept));
      cells.push_back(number_text(row.cut->would_be));
    }
    table.add(std::move(cells));
  }
  return table.text();
}

std::string scales_text(const std::vector<ScaleRow>& rows, bool all) {
  if (rows.empty()) return "";
  const bool patched = rows.front().cut && rows.front().cut->patched;
  const std::string text =
      counted(static_cast<int64_t>(rows.size()), "scale") + " of sizes that were cut " +
      (patched ? "made to follow them.\n" : "frozen; --rescale lets them follow.\n");
  return text + (all ? "\n" + scales_text(rows) : "");
}

}  // namespace parsimony
