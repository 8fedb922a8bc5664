// The JSON of a program while an edit is written into it.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "parsimony/torch_io/exported/archive_impl.h"
#include "parsimony/torch_io/exported/program_impl.h"
#include "parsimony/torch_io/script/editor.h"

namespace parsimony::torch_io::exported {

using Json = nlohmann::ordered_json;

/// {"as_int": 3}
Json tagged(const char* kind, Json value);

struct Draft {
  Draft(const Archive& read_from, const Program& as_read, const EditedScript& with_edits,
        const torch::jit::Module& with_tensors);

  Json& at(const std::string& place) { return json.at(Json::json_pointer(place)); }
  Json& graph() { return at(kTopGraph); }
  Json& input_specs() { return json["graph_module"]["signature"]["input_specs"]; }
  const Json& input_specs() const { return json["graph_module"]["signature"]["input_specs"]; }

  /// Returns a value's name in a graph of the program. @throws UnsupportedError if it is not
  /// visible there
  std::string name_of(const torch::jit::Value& value, const std::string& graph) const;

  /// {"as_tensor": {"name": "relu"}}
  Json named(const torch::jit::Value& value, const std::string& graph) const;

  /// Returns the argument for a call's input; null for kinds that no edit makes.
  Json argument(const torch::jit::Value& value, const std::string& graph) const;

  /// Returns a tensor of the small program.
  at::Tensor tensor(const std::string& path) const;

  const Archive& archive;
  const Program& program;
  const EditedScript& edited;
  const torch::jit::Module& small;
  Json json;
  std::map<std::string, std::string> placeholders;  ///< those of the program and added ones
};

/// Adds the tensors of the edits to the program and removes unread ones; returns all tensors of the
/// new archive.
std::vector<NamedTensor> settle_tensors(Draft& draft);

/// Updates the declared sizes of tensors and results, given the calls by their steps.
void settle_sizes(Draft& draft, const std::map<size_t, torch::jit::Node*>& calls);

}  // namespace parsimony::torch_io::exported
