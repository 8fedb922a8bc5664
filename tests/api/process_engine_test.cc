#include "parsimony/api/process_engine.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

/// A process that gives these answers, one after the other.
class Other {
 public:
  explicit Other(std::vector<std::string> answers) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_.data()), 0);
    thread_ = std::jthread([this, answers = std::move(answers)] {
      for (const std::string& answer : answers) {
        std::array<uint64_t, 2> sizes{};
        if (read(sockets_[1], sizes.data(), sizeof sizes) != sizeof sizes) break;
        std::string asked(sizes[0] + sizes[1], ' ');
        if (read(sockets_[1], asked.data(), asked.size()) < 0) break;
        asked_.push_back(asked);
        sizes = {answer.size(), 0};
        if (write(sockets_[1], sizes.data(), sizeof sizes) < 0) break;
        if (write(sockets_[1], answer.data(), answer.size()) < 0) break;
      }
      close(sockets_[1]);
    });
  }
  ~Other() { close(sockets_[0]); }

  std::string data() const { return "process:" + std::to_string(sockets_[0]); }
  std::vector<std::string> asked() {
    thread_.join();
    return asked_;
  }

 private:
  std::array<int, 2> sockets_{};
  std::vector<std::string> asked_;
  std::jthread thread_;
};

std::string beginning(int batch) {
  return R"({"samples":5,"values":3,"batch":)" + std::to_string(batch) +
         R"(,"batches":[5],"weights":[]})";
}

TEST(ProcessEngine, IsForItsDataOnly) {
  EXPECT_EQ(ProcessEngine::of("npz:samples.npz"), nullptr);
  EXPECT_THROW(ProcessEngine::of("process:x"), ConfigError);
}

TEST(ProcessEngine, DividesSamplesIntoRuns) {
  Other any({beginning(0)});
  EXPECT_EQ(ProcessEngine::of(any.data())->runs(2), (std::vector<int64_t>{2, 2, 1}));
  Other fixed({beginning(2)});
  EXPECT_EQ(ProcessEngine::of(fixed.data())->runs(4), (std::vector<int64_t>{2, 2}));
}

TEST(ProcessEngine, ForgetsValuesThatNobodyUses) {
  const std::string values = R"({"values":[{"number":7,"dtype":1,"dims":[2,3]}]})";
  Other other({beginning(0), values, values});
  const auto engine = ProcessEngine::of(other.data());
  EXPECT_EQ(engine->inputs(0, 2).front()->dims(), (Shape{2, 3}));
  engine->inputs(2, 2);
  EXPECT_EQ(other.asked().back(), R"({"do":"inputs","first":2,"count":2,"forget":[7]})");
}

TEST(ProcessEngine, ReportsWhatTheOtherSideSays) {
  Other other({beginning(0), R"({"error":"no such operator"})"});
  const auto engine = ProcessEngine::of(other.data());
  try {
    engine->open(Graph(), {});
    ADD_FAILURE() << "it was opened";
  } catch (const UnsupportedError& error) {
    EXPECT_STREQ(error.what(), "no such operator");
  }
  EXPECT_THROW(engine->inputs(0, 1), UnsupportedError);  // it has ended
}

}  // namespace
}  // namespace parsimony
