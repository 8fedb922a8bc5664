// Steps of a run that take more than a kernel: If, Loop and Scan, which run graphs; weights that
// are larger than one would hold; and, in masked execution, the sizes of the small network.
#pragma once

#include <functional>
#include <vector>

#include "parsimony/torch_io/executor/call_impl.h"
#include "parsimony/torch_io/executor/program_impl.h"

namespace parsimony::executor {

/// Is it one of the three, with its bodies, in a version that is run?
bool is_control(const Node& node);

/// Runs a body on the inputs that the operator gives it.
using RunBody = std::function<Tensors(const BodyProgram& body, Tensors inputs)>;

/// Which of the node's bodies run, and how often, depends on the operands.
Tensors run_control(const Call& call, const IdVector<BodyId, BodyProgram>& bodies,
                    const RunBody& run);

/// The operand of the node that can be read so: the matrix of MatMul, what Gather takes rows of.
/// kNone if there is none. Of programs that widen halves, whose pieces are of the other operand's
/// type.
ValueId read_in_pieces(const Program& program, const Step& step);

/// The node's result in each of several runs, for all of which a row is read once.
/// @throws c10::Error
Tensors compute_in_pieces(const std::vector<Call>& calls, const HeldWeight& weight);

/// Sizes are those of the original, for data is moved by them. What they are in the small network
/// is computed beside, from Shape on through whatever reads nothing but sizes and weights.
class SmallSizes {
 public:
  explicit SmallSizes(const Program& program);

  /// Does the node compute from sizes, and perhaps weights, alone?
  bool computes(const Step& step) const;
  /// A size that enters the arithmetic as a real number is that of the small network, or what the
  /// plan puts in its place.
  void substitute(const Step& step, Call& call) const;
  /// Computes what a node that has run says of sizes.
  void follow(const Step& step, const Call& call);

 private:
  bool reads_constants_only(const Step& step) const;

  IdVector<ValueId, at::Tensor> small_;
  IdVector<ValueId, bool> constant_;  ///< computed from weights alone
};

}  // namespace parsimony::executor
