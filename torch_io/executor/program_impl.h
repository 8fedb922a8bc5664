// What GraphModule keeps of a Graph, and how it is run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/torch_io/executor/held_weight_impl.h"
#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {

struct Step {
  Node node;
  const Operator* op = nullptr;
  std::string key;                                     ///< first non-empty output's name
  std::vector<ValueId> frees;                          ///< values that nobody reads afterwards
  std::vector<std::pair<size_t, at::Tensor>> patches;  ///< operands that the plan replaces
  int zeroed = -1;       ///< of an addition: the operand that is zero, as its block is removed
  bool chooses = false;  ///< see Choices
};

/// The nodes of a graph inside a node. It computes among the values of the whole network, so that
/// what it captures is simply there.
struct BodyProgram {
  std::string attribute;
  std::vector<Step> steps;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

struct Program {
  Program() = default;
  explicit Program(const Graph& graph);

  IdVector<ValueId, std::string> names;
  IdVector<ValueId, WeightId> weight_of;
  std::vector<Step> steps;
  IdVector<BodyId, BodyProgram> bodies;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  IdVector<WeightId, HeldWeight> weights;   ///< neither tensor nor `read` where nobody can use it
  std::map<std::string, WeightId> by_name;  ///< the first of each name
  bool masked = false;
  bool widens = false;  ///< halves become floats when they are computed with, and stay floats

  /// The steps of the network itself, then those of each body.
  std::vector<std::vector<Step>*> all_steps();
  /// The step whose node has this first output; null if there is none.
  Step* find(const std::string& key);
  /// Null where the value is no weight.
  const HeldWeight* held(ValueId v) const;
};

/// Why a node cannot be run; empty if it can.
std::string why_not(const Graph& graph, const Node& node);
/// libtorch has the weight's type.
bool has_tensor(const Weight& weight);

using Observer = std::function<void(const Node&, ValueId, const at::Tensor&)>;

/// Runs on several inputs. Where weights are read anew the runs go step by step together, so that
/// each is read once; else one after the other, for the memory that their values take.
std::vector<Tensors> run(const Program& program, const std::vector<Tensors>& inputs, bool training,
                         const Observer& observer);

/// Registers a copy of a tensor under a name and returns it.
using AddWeight = std::function<at::Tensor(const std::string& name, const at::Tensor& of)>;

void mask(Program& program, const Plan& plan, const AddWeight& add);

}  // namespace parsimony::executor
