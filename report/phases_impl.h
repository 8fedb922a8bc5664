// The phases of an epoch as JSON: in ledgers and in reports. Private to report/.
#pragma once

#include "parsimony/report/json_impl.h"
#include "parsimony/report/ledger_point.h"

namespace parsimony {

inline Json to_object(const LedgerPoint::Phases& phases) {
  return {{"wait", phases.wait},
          {"forward", phases.forward},
          {"backward", phases.backward},
          {"optimizer", phases.optimizer},
          {"rest", phases.rest}};
}

}  // namespace parsimony
