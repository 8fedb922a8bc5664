#include "parsimony/training/run/record.h"

#include <utility>

#include "parsimony/training/run/measured.h"

namespace parsimony::training {
namespace {

LedgerPoint::Evidence evidence(const Proof& proof) {
  LedgerPoint::Evidence result;
  result.ran = proof.ran();
  result.reason = proof.not_run;
  result.against = proof.mixes ? "the original with the removed channels absent from its statistics"
                               : "the original with the removed slices set to zero";
  if (const OutputDifference* worst = proof.worst()) {
    result.difference = worst->difference;
    result.tolerance = worst->tolerance;
  }
  return result;
}

}  // namespace

void Record::add(PruneOutcome cut, Net& net) {
  if (plans.empty()) {
    point.params.before = cut.before.params;
    point.macs.before = cut.before.macs;
  }
  point.params.after = cut.after.params;
  point.macs.after = cut.after.macs;
  point.prune_seconds += cut.seconds;
  point.unpruned_dims = cut.plan.unpruned_dims;
  if (!cut.plan.empty()) point.proof = evidence(cut.proof);
  plans.push_back(std::move(cut.plan));
  point.layers = layer_widths(net, plans, dense_shapes);
}

}  // namespace parsimony::training
