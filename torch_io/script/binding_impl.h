// Abstract values of a jit graph while it is read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/base/types.h"

namespace parsimony::torch_io::script {

struct Object;  // a module instance: interpreter_impl.h

/// A location in the jit graph: input `input` of call `call`, or element `item` of the list at that
/// input.
struct SourceLocation {
  int call = kNone;
  int input = kNone;
  int item = kNone;

  bool known() const { return call != kNone; }
  bool operator==(const SourceLocation&) const = default;
};

enum class BindingKind : uint8_t {
  kUnknown,  ///< only known at run time
  kNone,
  kInt,
  kFloat,
  kBool,
  kString,
  kTensor,  ///< `value` of the graph
  kNumber,  ///< a number known at run time: a size, or computed from sizes; `value`, of rank 0
  kList,    ///< a list or a tuple
  kObject,
};

/// `text` of a list with the alternating keys and values of a dictionary.
inline constexpr const char* kDictionary = "dictionary";

struct Binding {
  BindingKind kind = BindingKind::kUnknown;
  int64_t integer = 0;  ///< kInt, kBool
  double number = 0;    ///< kFloat
  std::string text = {};
  ValueId value = parsimony::kNone;
  std::shared_ptr<std::vector<Binding>> items = {};  ///< shared: lists may grow
  std::shared_ptr<const Object> object = {};

  bool is(BindingKind k) const { return kind == k; }
  /// A number that is known statically.
  bool fixed_number() const {
    return kind == BindingKind::kInt || kind == BindingKind::kFloat || kind == BindingKind::kBool;
  }
  bool is_number() const { return fixed_number() || kind == BindingKind::kNumber; }
  double as_double() const {
    return kind == BindingKind::kFloat ? number : static_cast<double>(integer);
  }

  static Binding none() { return {.kind = BindingKind::kNone}; }
  static Binding of_int(int64_t v) { return {.kind = BindingKind::kInt, .integer = v}; }
  static Binding of_bool(bool v) { return {.kind = BindingKind::kBool, .integer = v ? 1 : 0}; }
  static Binding of_float(double v) { return {.kind = BindingKind::kFloat, .number = v}; }
  static Binding of_text(std::string v) {
    return {.kind = BindingKind::kString, .text = std::move(v)};
  }
  static Binding tensor(ValueId v) { return {.kind = BindingKind::kTensor, .value = v}; }
  static Binding run_time(ValueId v) { return {.kind = BindingKind::kNumber, .value = v}; }
  static Binding list(std::vector<Binding> v) {
    return {.kind = BindingKind::kList,
            .items = std::make_shared<std::vector<Binding>>(std::move(v))};
  }
};

}  // namespace parsimony::torch_io::script
