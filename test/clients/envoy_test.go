//go:build clients

package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
)

// envoyHTTP1 and envoyHTTP2 are where Envoy serves; it passes calls on in HTTP/1.1 and by h2c.
const (
	envoyHTTP1 = "127.0.0.1:8092"
	envoyHTTP2 = "127.0.0.1:8093"
)

// envoyConf passes on what Envoy drops by default: upgrades and trailers of HTTP/1.1.
func envoyConf() string {
	hostOf := func(addr string) (host, port string) { host, port, _ = strings.Cut(addr, ":"); return host, port }
	var listeners, clusters strings.Builder
	for name, way := range map[string]struct{ addr, protocol string }{
		"h1": {envoyHTTP1, "http_protocol_options: {enable_trailers: true}"}, "h2": {envoyHTTP2, "http2_protocol_options: {}"},
	} {
		_, port := hostOf(way.addr)
		fmt.Fprintf(&listeners, `
  - address: {socket_address: {address: 127.0.0.1, port_value: %[2]s}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: %[1]s
          http_protocol_options: {enable_trailers: true}
          upgrade_configs: [{upgrade_type: websocket}]
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: "/"}, route: {cluster: %[1]s, timeout: 0s}}]}]}
          http_filters: [{name: envoy.filters.http.router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
`, name, port)
		gateway, gatewayPort := hostOf(gatewayAddr())
		fmt.Fprintf(&clusters, `
  - name: %[1]s
    type: STATIC
    load_assignment: {cluster_name: %[1]s, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %[2]s, port_value: %[3]s}}}}]}]}
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {%[4]s}
`, name, gateway, gatewayPort, way.protocol)
	}
	return "static_resources:\n  listeners:" + listeners.String() + "  clusters:" + clusters.String()
}

// behindEnvoy starts Envoy in front of the first gateway.
func behindEnvoy(t *testing.T) {
	t.Helper()
	program := filepath.Join(installed(t, envoy), "bin", "envoy")
	conf := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(conf, []byte(envoyConf()), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-c", conf, "--concurrency", "1", "--log-level", "warn")
	background(t, cmd, "http://"+envoyHTTP1+path(peer)+"/see", "http://"+envoyHTTP2+path(peer)+"/see") // it opens one port after the other
}

func TestEnvoyPassesOnWhatHTTPHas(t *testing.T) {
	behindEnvoy(t)
	for _, addr := range []string{envoyHTTP1, envoyHTTP2} {
		url := "http://" + addr + path(peer)
		for _, n := range sizes {
			sent := curl(t, "--data-binary", "@"+file(t, n), url+"/see?q=%2F")
			if saw := readSeen(t, sent.body); sent.code() != "200" || saw.Bytes != n || saw.Sum != sumOf(t, n) || saw.Query != "q=%2F" {
				t.Errorf("%s: %d bytes: %s, and the function saw %+v", addr, n, sent.status, saw)
			}
			got := curl(t, fmt.Sprint(url, "/bytes?n=", n))
			if sum := sha256.Sum256(got.body); got.code() != "200" || hex.EncodeToString(sum[:]) != sumOf(t, n) {
				t.Errorf("%s: got %d of %d bytes with %s", addr, len(got.body), n, got.status)
			}
		}
		if got := curl(t, "--head", url+"/bytes?n=123456&length"); got.code() != "200" || got.header.Get("Content-Length") != "123456" {
			t.Errorf("%s: the head: %s %v", addr, got.status, got.header)
		}
		if got := curl(t, "--data", "12345", url+"/trailers"); string(got.body) != "5 bytes\n" || got.header.Get("X-Sum") != "5" {
			t.Errorf("%s: trailers: %q %v", addr, got.body, got.header)
		}
		if got := curl(t, url+"/hints"); string(got.body) != "hinted\n" {
			t.Errorf("%s: an answer behind interim ones: %s %q", addr, got.status, got.body)
		}
		cmd := exec.Command("curl", "--silent", "--output", filepath.Join(t.TempDir(), "body"), url+"/bytes?n=1000000&break=500000")
		if err := cmd.Run(); err == nil {
			t.Errorf("%s: curl took half an answer for a whole one", addr)
		}
	}
}

func TestWebSocketsAndGRPCPassThroughEnvoy(t *testing.T) {
	behindEnvoy(t)
	echoes(t, envoyHTTP1)
	callsOfAllKinds(t, service(t, peer, envoyHTTP2))
}

// echoes talks to the function over a WebSocket through a proxy.
func echoes(t *testing.T, proxy string) {
	t.Helper()
	socket, err := websocket.Dial("ws://"+proxy+path(peer)+"/ws", "", "http://"+proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	socket.MaxPayloadBytes = 2 << 20
	var got string
	if err := websocket.Message.Receive(socket, &got); err != nil || !strings.HasPrefix(got, "instance ") {
		t.Fatalf("it says %q, %v", got, err)
	}
	for _, said := range []string{"hällo", strings.Repeat("big ", 1<<18)} {
		if err := websocket.Message.Send(socket, said); err != nil {
			t.Fatal(err)
		}
		if err := websocket.Message.Receive(socket, &got); err != nil || got != said {
			t.Errorf("%d bytes came as %d: %v", len(said), len(got), err)
		}
	}
}
