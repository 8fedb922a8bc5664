// Steps that need more than a kernel: If, Loop and Scan, which run subgraphs; streamed weights;
// and, in masked execution, the sizes of the small network.
#pragma once

#include <functional>
#include <vector>

#include "parsimony/torch_io/executor/call_impl.h"
#include "parsimony/torch_io/executor/program_impl.h"

namespace parsimony::executor {

/// Is it one of the three, with its bodies, in a supported version?
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

/// The operand of the node that can be read in chunks: the matrix of MatMul, the table of Gather.
/// kNone if there is none. For programs that widen float16, where chunks have the other operand's
/// type.
ValueId read_in_chunks(const Program& program, const Step& step);

/// The node's results in several runs, reading every row only once.
/// @throws c10::Error
Tensors compute_in_chunks(const std::vector<Call>& calls, const HeldWeight& weight);

/// Execution uses the sizes of the original. Those of the small network are computed in parallel,
/// from Shape through all nodes that only read sizes and weights.
class SmallSizes {
 public:
  explicit SmallSizes(const Program& program);

  /// Does the node depend only on sizes and weights?
  bool computes(const Step& step) const;
  /// Substitutes a size that is used as a real number by that of the small network, or by the
  /// plan's number.
  void substitute(const Step& step, Call& call) const;
  /// Computes the small network's sizes for a node that has run.
  void follow(const Step& step, const Call& call);

 private:
  IdVector<ValueId, at::Tensor> small_;
  IdVector<ValueId, bool> constant_;  ///< computed from weights alone
};

}  // namespace parsimony::executor
