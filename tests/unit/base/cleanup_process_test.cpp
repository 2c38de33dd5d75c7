#include "base/cleanup_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>

namespace lockstep {
namespace {

// Says that it is there, reads until the channel ends, then says so.
void wait_and_say(int channel, int say) {
  char byte;
  (void)!::write(say, "up ", 3);
  while (::read(channel, &byte, 1) > 0 || errno == EINTR) {
  }
  (void)!::write(say, "over", 4);
}

// All that is written to `reading` until its last writer is gone.
std::string rest_of(int reading) {
  std::string text;
  char buffer[16];
  for (ssize_t size; (size = ::read(reading, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(size));
  }
  return text;
}

class CleanupProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reading_ = Descriptor(ends[0]);
    writing_ = Descriptor(ends[1]);
  }
  // A CleanupProcess closes all descriptors but its channel's: this one opens the pipe again.
  std::string pipe_path() const {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(writing_.get());
  }
  Descriptor reading_, writing_;
};

TEST_F(CleanupProcessTest, WorksWhenItsMakerIsKilled) {
  const std::string path = pipe_path();
  pid_t maker = ::fork();
  if (maker == 0) {
    CleanupProcess cleanup("cleanup-test", [&](int channel) {
      wait_and_say(channel, ::open(path.c_str(), O_WRONLY));
    });
    ::pause();
  }
  char up[3];
  EXPECT_EQ(::read(reading_.get(), up, 3), 3);
  ::kill(maker, SIGKILL);
  ::waitpid(maker, nullptr, 0);
  writing_.close();
  EXPECT_EQ(rest_of(reading_.get()), "over");
}

TEST_F(CleanupProcessTest, EndsWithItsOwner) {
  {
    const std::string path = pipe_path();
    CleanupProcess cleanup("cleanup-test", [&](int channel) {
      wait_and_say(channel, ::open(path.c_str(), O_WRONLY));
    });
    EXPECT_EQ(::write(cleanup.channel(), "a", 1), 1);
  }
  writing_.close();
  EXPECT_EQ(rest_of(reading_.get()), "up over");
}

}  // namespace
}  // namespace lockstep
