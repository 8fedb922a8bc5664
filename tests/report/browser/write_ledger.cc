// Writes the ledger of a sweep that nobody ran: write_ledger FOLDER [one|dense|hostile]
#include <string>
#include <vector>

#include "parsimony/report/ledger.h"
#include "tests/report/sample_sweep.h"

int main(int argc, char** argv) {
  using namespace parsimony;
  if (argc < 2) return 2;
  const std::string kind = argc > 2 ? argv[2] : "";
  std::vector<LedgerPoint> points = test::sample_sweep();
  if (kind == "one") points = {test::sample_point("l1", 0.5, 0)};
  if (kind == "dense") points = {test::sample_point("l1", 0, 0)};
  if (kind == "hostile") points = test::hostile_sweep();
  Ledger ledger(argv[1]);
  for (const LedgerPoint& point : points) ledger.append(point);
  return 0;
}
