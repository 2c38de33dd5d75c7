// Stands in for a cloud's metadata server: a thread of the test that answers on loopback.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dist/rank/network.h"

namespace lockstep {

class MetadataServer {
 public:
  MetadataServer() : listener_(listen_on("127.0.0.1", 0)), thread_([this] { run(); }) {}
  ~MetadataServer() {
    over_ = true;
    thread_.join();
    ::close(listener_);
  }
  MetadataServer(const MetadataServer&) = delete;
  MetadataServer& operator=(const MetadataServer&) = delete;

  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_of(listener_)); }
  // Answers requests whose path holds `part` in this way from now on; status 0: never.
  void answer(const std::string& part, int status, const std::string& body) {
    std::scoped_lock lock(mutex_);
    answers_[part] = {status, body};
  }
  // The requests so far, with their headers.
  std::vector<std::string> requests() {
    std::scoped_lock lock(mutex_);
    return requests_;
  }

 private:
  struct Answer {
    int status = 404;
    std::string body;
  };

  void run() {
    while (!over_) {
      pollfd wanted{listener_, POLLIN, 0};
      if (::poll(&wanted, 1, 20) <= 0) continue;
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client >= 0 && !serve(client)) {
        silent_.push_back(client);
      } else {
        ::close(client);
      }
    }
    for (int client : silent_) ::close(client);
  }
  // Returns false for a request that is left without an answer.
  bool serve(int client) {
    std::string request;
    char bytes[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t size = ::read(client, bytes, sizeof bytes);
      if (size <= 0) return true;
      request.append(bytes, static_cast<std::size_t>(size));
    }
    Answer answer;
    {
      std::scoped_lock lock(mutex_);
      requests_.push_back(request);
      const std::string path = request.substr(0, request.find("\r\n"));
      for (const auto& [part, given] : answers_) {
        if (path.find(part) != std::string::npos) answer = given;
      }
    }
    if (answer.status == 0) return false;
    const std::string text =
        fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                    answer.status, answer.body.size(), answer.body);
    return ::write(client, text.data(), text.size()) >= 0;
  }

  int listener_;
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  std::map<std::string, Answer> answers_;
  std::vector<std::string> requests_;
  std::vector<int> silent_;
  std::thread thread_;  // last, as it uses the others
};

}  // namespace lockstep
