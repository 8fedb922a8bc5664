#include "parsimony/graph/operators/schema.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>

#include "parsimony/graph/elements.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/operators/notation.h"

namespace parsimony {
namespace {

/// A custom operator, with the storage that its row refers to.
struct Added {
  std::string op, line, domain, layer, scale, bits, bits_of_data;
  OpSchema schema;
  notation::Line compiled;
};

std::deque<Added>& added() {
  static std::deque<Added> operators;
  return operators;
}

const std::vector<notation::Line>& compiled_lines() {
  static const std::vector<notation::Line> lines = [] {
    std::vector<notation::Line> result;
    for (const OpSchema& schema : operator_table()) {
      result.push_back(schema.line.empty() ? notation::Line{} : notation::parse(schema.line));
    }
    return result;
  }();
  return lines;
}

using SchemaKey = std::pair<std::string_view, std::string_view>;  // domain and operator

/// A hash of the ends and the length of an operator's name, which tell most of them apart: quicker
/// than a hash of the whole. Few operators of two domains share a name.
struct HashOfName {
  size_t operator()(const SchemaKey& key) const {
    constexpr size_t kMix = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
    const std::string_view name = key.second;
    uint64_t first = 0;
    uint64_t last = 0;
    const size_t part = std::min(name.size(), sizeof(first));
    std::memcpy(&first, name.data(), part);
    std::memcpy(&last, name.data() + name.size() - part, part);
    const size_t mixed = (first + 31 * last + name.size()) * kMix;
    return mixed ^ (mixed >> 32);
  }
};

using Schemas = absl::flat_hash_map<SchemaKey, const OpSchema*, HashOfName>;

/// Returns the table's rows and those that were added. Every pass asks for every node.
inline Schemas& schemas() {
  static Schemas all = [] {
    Schemas result;
    for (const OpSchema& row : operator_table())
      result.emplace(SchemaKey(row.domain, row.op), &row);
    return result;
  }();
  return all;
}

}  // namespace

std::string_view present_domain(std::string_view domain) {
  const bool is_earlier = domain == "onnx.brevitas" || domain == "finn.custom_op.general";
  return is_earlier ? "qonnx.custom_op.general" : domain;
}

const OpSchema* find_schema(std::string_view domain, std::string_view op) {
  if (!domain.empty()) domain = present_domain(domain);
  const auto found = schemas().find(SchemaKey(domain, op));
  return found == schemas().end() ? nullptr : found->second;
}

const OpSchema* followed_schema(const Node& node) {
  const OpSchema* schema = find_schema(node.domain, node.op);
  return schema != nullptr && schema->is_followed() ? schema : nullptr;
}

const OpSchema& schema_of(const Node& node) {
  static constexpr OpSchema kUnknown = {.zero = ZeroBehaviour::kConstant};
  const OpSchema* schema = find_schema(node.domain, node.op);
  return schema == nullptr ? kUnknown : *schema;
}

const notation::Line* compiled(const OpSchema& schema) {
  if (schema.line.empty()) return nullptr;
  const OpSchema* const begin = operator_table().data();
  const std::less<> before;  // of pointers, wherever they point
  if (!before(&schema, begin) && before(&schema, begin + operator_table().size())) {
    return &compiled_lines()[&schema - begin];
  }
  for (const Added& own : added()) {
    if (&own.schema == &schema) return &own.compiled;
  }
  return nullptr;
}

ZeroBehaviour zero_behaviour(const NodeView& view) {
  const OpSchema& schema = schema_of(view.node());
  if (schema.zero_of != nullptr) return schema.zero_of(view);
  return schema.is_followed() ? schema.zero : ZeroBehaviour::kConstant;
}

DType result_type(const Graph& graph, const Node& node, size_t output) {
  const ResultType type = schema_of(node).result;
  if (type == ResultType::kBool) return DType::kBool;
  const bool index = type == ResultType::kSecondIsInt64 && output == 1;
  if (type == ResultType::kInt64 || index) return DType::kInt64;
  for (size_t i = type == ResultType::kOfSecond ? 1 : 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNone) return graph.value(node.inputs[i]).dtype;
  }
  return DType::kUnknown;
}

bool draws(const Graph& graph, const Node& node) {
  const OpSchema& schema = schema_of(node);
  if (schema.has(kDraws)) return true;
  if (schema.draws_if < 0 || schema.draws_if >= std::ssize(node.inputs)) return false;
  const ValueId mode = node.inputs[schema.draws_if];
  const WeightId weight = mode == kNone ? kNone : graph.value(mode).weight;
  return weight != kNone && std::ranges::any_of(dense_bytes(graph.weight(weight)),
                                                [](std::byte b) { return b != std::byte{0}; });
}

bool reads_elements(const Node& node, int input) {
  const OpSchema& schema = schema_of(node);
  return !schema.has(kReadsSizes) && schema.type_from != input;
}

void add_operator(const OpSchema& schema) {
  if (find_schema(schema.domain, schema.op) != nullptr)
    throw errors::known_operator(schema.domain, schema.op);
  notation::Line compiled;
  try {
    if (!schema.line.empty()) compiled = notation::parse(schema.line);
  } catch (const std::invalid_argument& error) {
    throw ConfigError("rule of ", in_quotes(schema.op), ": ", error.what());
  }
  Added& own =
      added().emplace_back(Added{std::string(schema.op), std::string(schema.line),
                                 std::string(schema.domain), std::string(schema.linear.layer),
                                 std::string(schema.scale), std::string(schema.integers.bits),
                                 std::string(schema.data.bits), schema, std::move(compiled)});
  own.schema.op = own.op;
  own.schema.line = own.line;
  own.schema.domain = own.domain;
  own.schema.linear.layer = own.layer;
  own.schema.scale = own.scale;
  own.schema.integers.bits = own.bits;
  own.schema.data.bits = own.bits_of_data;
  schemas().emplace(SchemaKey(own.domain, own.op), &own.schema);
}

}  // namespace parsimony
