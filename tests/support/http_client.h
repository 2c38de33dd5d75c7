// A client of HTTP/1.1 for tests: it sends what it is told to, byte for byte, and reads answers one
// after the other.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace lockstep {

struct HttpAnswer {
  int status = 0;  // 0: the connection ended, or nothing came for 20 s
  std::string header, body;
};

class HttpClient {
 public:
  // Connects to a port of this machine. `receive_bytes`: of the socket's buffer; 0: the system's.
  explicit HttpClient(int port, int receive_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0) {
      ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      socket_.close();
    }
  }

  bool connected() const { return socket_.open(); }
  void close() { socket_.close(); }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t size = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(size));
    }
  }

  void send_request(const std::string& method, const std::string& path,
                    const std::string& body = "", const std::string& type = "text/plain") {
    std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n", method, path);
    if (!body.empty() || method == "POST") {
      out += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", type, body.size());
    }
    send(out + "\r\n" + body);
  }

  // `head`: the answer has no body, whatever its header says.
  HttpAnswer read_answer(bool head = false) {
    HttpAnswer out;
    std::size_t end;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
      if (!receive()) return out;
    }
    out.header = input_.substr(0, end + 2);
    input_.erase(0, end + 4);
    const std::size_t length = out.header.find("Content-Length: ");
    std::size_t left = head || length == std::string::npos
                           ? 0
                           : std::strtoull(out.header.c_str() + length + 16, nullptr, 10);
    while (input_.size() < left) {
      if (!receive()) return {};
    }
    out.body = input_.substr(0, left);
    input_.erase(0, left);
    out.status = std::atoi(out.header.c_str() + 9);
    return out;
  }

  HttpAnswer get(const std::string& path) {
    send_request("GET", path);
    return read_answer();
  }
  HttpAnswer post(const std::string& body, const std::string& type = "text/plain") {
    send_request("POST", "/translate", body, type);
    return read_answer();
  }

  // Whether the other side has ended the connection, or does so within 20 s.
  bool ended() {
    while (receive()) {
    }
    return at_end_;
  }

 private:
  bool receive() {
    pollfd wanted{socket_.get(), POLLIN, 0};
    if (::poll(&wanted, 1, 20'000) <= 0) return false;
    char bytes[4096];
    const ssize_t size = ::recv(socket_.get(), bytes, sizeof bytes, 0);
    if (size <= 0) {
      at_end_ = true;
      return false;
    }
    input_.append(bytes, static_cast<std::size_t>(size));
    return true;
  }

  Descriptor socket_;
  std::string input_;
  bool at_end_ = false;
};

}  // namespace lockstep
