// The executable form of a Graph in GraphModule.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/torch_io/executor/call_impl.h"
#include "parsimony/torch_io/executor/operators_impl.h"
#include "parsimony/torch_io/executor/weights_impl.h"

namespace parsimony::executor {

struct Step {
  Node node;
  const Operator* op = nullptr;
  std::string key;                                     ///< first non-empty output's name
  std::vector<ValueId> frees;                          ///< values that are not read afterwards
  std::vector<std::pair<size_t, at::Tensor>> patches;  ///< operands replaced by the plan
  bool chooses = false;                                ///< see Choices
  std::vector<DType> types = {};  ///< types of the operands, as far as the file specifies
};

/// The steps of a subgraph. It shares the values of the whole network, which makes captured values
/// available.
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
  /// Kept indices per axis, boolean, of inputs that are partly absent, with zeros there.
  std::map<ValueId, std::vector<std::pair<int64_t, at::Tensor>>> inputs_kept;
  IdVector<WeightId, StoredWeight> weights;  ///< neither tensor nor `read` if unused
  std::map<std::string, WeightId> by_name;   ///< the first weight of each name
  std::shared_ptr<const Plan> plan;          ///< that the weights' masks refer to; may be null
  bool masked = false;
  bool mixes = false;     ///< the plan has groups that pass through mixing operators
  bool branches = false;  ///< the small network lacks parts that stay here: see mask()
  bool widens = false;    ///< float16 is widened to float32 and stays so

  /// Returns null if the value is not a weight.
  const StoredWeight* stored(ValueId v) const;
};

/// Says why a node cannot be run; empty if it can.
std::string why_not(const Graph& graph, const Node& node);
/// Whether a tensor can store the weight's elements.
bool has_tensor(const Weight& weight);

using Observer = std::function<void(const Node&, ValueId, const at::Tensor&)>;

/// Runs on several inputs. With streamed weights all runs advance step by step together, so that
/// each weight is read once; otherwise they run one after the other to save memory.
std::vector<Tensors> run(const Program& program, const std::vector<Tensors>& inputs, bool training,
                         const Observer& observer);

/// Fuses x · sigmoid(x) into one node. Call when the weights are in place: node ids change.
Graph with_swish(Graph graph);

/// Registers a copy of a tensor under a name and returns it.
using AddWeight = std::function<at::Tensor(const std::string& name, const at::Tensor& of)>;

/// Applies the plan. Residual blocks leave. Branches that leave with experts stay, with what they
/// read of these experts as the zeros that it is: they have to add zero.
void mask(Program& program, const Plan& plan, const AddWeight& add);

// Steps that need more than a kernel: If, Loop and Scan, which run subgraphs; streamed weights;
// and, in masked execution, the sizes of the small network.

/// Whether it is one of the three, with its bodies, in a supported version.
bool is_control(const Node& node);

/// A tensor and its presence, as in `Call`.
struct Partial {
  at::Tensor tensor;
  at::Tensor present = {};
};
using Partials = std::vector<Partial>;

/// Runs a body on the inputs that the operator passes to it.
using RunBody = std::function<Partials(const BodyProgram& body, Partials inputs)>;

/// Runs the node's bodies as the operands determine.
Partials run_control(const Call& call, const IdVector<BodyId, BodyProgram>& bodies,
                     const RunBody& run);

/// Returns the operand that can be read in chunks: the matrix of MatMul, the table of Gather; else
/// kNone. For programs that widen float16, where chunks have the other operand's type.
ValueId read_in_chunks(const Program& program, const Step& step);

/// Computes the node's results in several runs, reading every row only once.
/// @throws c10::Error
Tensors compute_in_chunks(const std::vector<Call>& calls, const StoredWeight& weight);

/// Tracks sizes of the small network, since execution uses those of the original. They are computed
/// in parallel, from Shape through all nodes that only read sizes and weights.
class SmallSizes {
 public:
  explicit SmallSizes(const Program& program);

  /// Whether the node depends only on sizes and weights.
  bool computes(const Step& step) const;
  /// Replaces a size used as a real number by that of the small network, or by the plan's number.
  void substitute(const Step& step, Call& call) const;
  /// Computes the small network's sizes for a node that has run.
  void follow(const Step& step, const Call& call);

 private:
  /// Whether the operand is computed from weights alone, or only read for its type.
  bool is_constant(const Node& node, int input) const;

  IdVector<ValueId, at::Tensor> small_;
  IdVector<ValueId, bool> constant_;  ///< computed from weights alone
};

}  // namespace parsimony::executor
