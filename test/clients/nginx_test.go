//go:build clients

package clients

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// nginxAddr and nginxGRPC are where nginx serves, in the lab's own network.
const (
	nginxAddr = "127.0.0.1:8090"
	nginxGRPC = "127.0.0.1:8091"
)

// nginxConf passes calls on as nginx does by default, in HTTP/1.0 and with buffers, but for
// WebSockets and gRPC, which need what the documentation of nginx says. It is one process, so that
// nothing is left of it when that is killed.
const nginxConf = `
user root;
daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  client_max_body_size 64m;
  server {
    listen %[2]s;
    location / {
      proxy_pass http://%[4]s;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto https;
    }
    location %[5]s/ws {
      proxy_pass http://%[4]s;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection "upgrade";
    }
  }
  server {
    listen %[3]s http2;
    location / {
      grpc_pass grpc://%[4]s;
      grpc_set_header Host %[6]s;
    }
  }
}
`

// behindNginx starts nginx in front of the first gateway, and returns where it has a function.
func behindNginx(t *testing.T) (url string) {
	t.Helper()
	needs(t, "nginx")
	dir := t.TempDir()
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(nginxConf, dir, nginxAddr, nginxGRPC, gatewayAddr(), path(peer), host(peer))
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	url = "http://" + nginxAddr + path(peer)
	background(t, exec.Command("nginx", "-p", dir, "-c", conf), url+"/see")
	return url
}

func TestNginxSpeaksHTTP10ToTheGateway(t *testing.T) {
	url := behindNginx(t)
	for _, n := range sizes {
		sent := curl(t, "--data-binary", "@"+file(t, n), url+"/see?q=%2F")
		saw := readSeen(t, sent.body)
		if sent.code() != "200" || saw.Bytes != n || saw.Sum != sumOf(t, n) || saw.Query != "q=%2F" || saw.Header.Get("X-Forwarded-Proto") != "https" {
			t.Errorf("%d bytes: %s, and the function saw %+v", n, sent.status, saw)
		}
		for _, query := range []string{"", "&length"} {
			got := curl(t, fmt.Sprint(url, "/bytes?n=", n, query))
			sum := sha256.Sum256(got.body)
			if got.code() != "200" || hex.EncodeToString(sum[:]) != sumOf(t, n) {
				t.Errorf("%d bytes %s: got %d of them with %s", n, query, len(got.body), got.status)
			}
		}
	}
	if got := curl(t, "--head", url+"/bytes?n=123456&length"); got.code() != "200" || got.header.Get("Content-Length") != "123456" {
		t.Errorf("the head: %s %v", got.status, got.header)
	}
	if got := curl(t, "--data-binary", "@"+file(t, 20<<20), url+"/early?status=403"); got.code() != "403" || string(got.body) != "early\n" {
		t.Errorf("an early answer: %s %q", got.status, got.body)
	}
	if got := curl(t, "--data", "12345", url+"/trailers"); string(got.body) != "5 bytes\n" {
		t.Errorf("an answer with trailers: %s %q", got.status, got.body)
	}
	if got := curl(t, url+"/hints"); string(got.body) != "hinted\n" {
		t.Errorf("an answer behind interim ones: %s %q", got.status, got.body)
	}
}

// The end of an HTTP/1.0 answer is that of its connection, so nginx must not take a reset for one.
func TestNginxNoticesAnAnswerThatBreaksOff(t *testing.T) {
	url := behindNginx(t)
	for _, query := range []string{"", "&length"} {
		cmd := exec.Command("curl", "--silent", "--output", filepath.Join(t.TempDir(), "body"), url+"/bytes?n=1000000&break=500000"+query)
		if err := cmd.Run(); err == nil {
			t.Errorf("%s: curl took half an answer for a whole one", query)
		}
	}
}

func TestEventsComeThroughNginxOneByOne(t *testing.T) {
	url := behindNginx(t)
	answer, err := http.Get(url + "/events?n=3&key=nginx")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for i := range 3 {
		want := fmt.Sprint("data: event ", i)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data:") {
		}
		if lines.Text() != want {
			t.Fatalf("came %q, want %q: %v", lines.Text(), want, lines.Err())
		}
		if _, err := ask(t.Context(), url+"/next?key=nginx"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWebSocketsAndGRPCPassThroughNginx(t *testing.T) {
	behindNginx(t)
	echoes(t, nginxAddr)
	callsOfAllKinds(t, service(t, peer, nginxGRPC))
}
