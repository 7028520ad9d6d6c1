//go:build clients

package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// answer is what curl got.
type answer struct {
	// interim are the status lines before the last one.
	interim []string
	status  string
	// header has trailers too, as curl sees them.
	header http.Header
	body   []byte
}

// curl runs curl, which must get an answer.
func curl(t *testing.T, arguments ...string) answer {
	t.Helper()
	dir := t.TempDir()
	head, body := filepath.Join(dir, "head"), filepath.Join(dir, "body")
	output(t, "curl", append([]string{"--silent", "--show-error", "--dump-header", head, "--output", body}, arguments...)...)
	a := answer{header: make(http.Header)}
	text, err := os.ReadFile(head)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, field := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case strings.HasPrefix(line, "HTTP/"):
			if a.status != "" {
				a.interim = append(a.interim, a.status)
			}
			a.status = strings.TrimSpace(line)
		case field:
			a.header.Add(name, value)
		}
	}
	if a.body, err = os.ReadFile(body); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return a
}

// code is the status without the version and the reason.
func (a answer) code() string {
	_, rest, _ := strings.Cut(a.status, " ")
	code, _, _ := strings.Cut(rest, " ")
	return code
}

// chance is n bytes of the function's /bytes.
func chance(n int64) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{}), n) }

// sumOf is the sum of those bytes, as the function writes sums.
func sumOf(t *testing.T, n int64) string {
	t.Helper()
	sum := sha256.New()
	if _, err := io.Copy(sum, chance(n)); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// file is a file with those bytes.
func file(t *testing.T, n int64) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "body"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(f, chance(n)); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// versions are the ones that curl speaks to the gateway, with how its status lines begin. The
// gateway answers HTTP/1.0 with HTTP/1.0 or 1.1, as RFC 9112 allows.
var versions = map[string]string{"--http1.0": "HTTP/1.", "--http1.1": "HTTP/1.1", "--http2-prior-knowledge": "HTTP/2"}

// sizes of bodies: none, within a frame, at the border of what is read before an instance is
// looked for, and beyond what a gateway keeps.
var sizes = []int64{0, 1, 4 << 10, 64 << 10, 64<<10 + 1, 200 << 10, 5 << 20}

func TestCurlSendsAndGetsBodiesOfAllSizes(t *testing.T) {
	for version, line := range versions {
		t.Run(version, func(t *testing.T) {
			for _, n := range sizes {
				body := file(t, n)
				sent := curl(t, version, "--data-binary", "@"+body, url(peer)+"/see?q=%2F&r")
				saw := readSeen(t, sent.body)
				if !strings.HasPrefix(sent.status, line) || sent.code() != "200" || saw.Length != n || saw.Bytes != n || saw.Sum != sumOf(t, n) || saw.Query != "q=%2F&r" {
					t.Errorf("%d bytes with a length: %s, and the function saw %+v", n, sent.status, saw)
				}
				if version != "--http1.0" {
					sent = curl(t, version, "--header", "Transfer-Encoding: chunked", "--data-binary", "@"+body, url(peer)+"/see")
					if saw := readSeen(t, sent.body); saw.Bytes != n || saw.Sum != sumOf(t, n) || n > 0 && saw.Length != -1 {
						t.Errorf("%d bytes without a length: the function saw %+v", n, saw)
					}
				}
				for _, query := range []string{"", "&length"} {
					got := curl(t, version, url(peer)+"/bytes?n="+fmt.Sprint(n)+query)
					sum := sha256.Sum256(got.body)
					if got.code() != "200" || hex.EncodeToString(sum[:]) != sumOf(t, n) {
						t.Errorf("%d bytes %s: got %d of them with %s", n, query, len(got.body), got.status)
					}
					if length := got.header.Get("Content-Length"); query != "" && length != fmt.Sprint(n) {
						t.Errorf("%d bytes with a length came with the length %q", n, length)
					}
				}
			}
		})
	}
}

func TestCurlAsksForTheHead(t *testing.T) {
	for version := range versions {
		got := curl(t, version, "--head", url(peer)+"/bytes?n=123456&length")
		if got.code() != "200" || got.header.Get("Content-Length") != "123456" || got.header.Get("Etag") != `"always"` || got.header.Get("Windlass-Executed") != "yes" {
			t.Errorf("%s: %s %v", version, got.status, got.header)
		}
	}
}

func TestCurlWaitsBeforeItSendsABigBody(t *testing.T) {
	const n = 20 << 20
	body := file(t, n)
	expect := []string{"--http1.1", "--header", "Expect: 100-continue", "--expect100-timeout", "30", "--data-binary", "@" + body}
	got := curl(t, append(expect, url(peer)+"/see")...)
	if saw := readSeen(t, got.body); !slices.Equal(got.interim, []string{"HTTP/1.1 100 Continue"}) || saw.Sum != sumOf(t, n) {
		t.Errorf("interim answers %q, and the function saw %+v", got.interim, saw)
	}
	got = curl(t, append(expect, "--write-out", "%{stderr}%{size_upload}", url(peer)+"/early?status=403")...)
	if got.code() != "403" || len(got.interim) > 0 {
		t.Errorf("refused: %q then %s", got.interim, got.status)
	}
	got = curl(t, append(expect[:3:3], "--data", "small", url(peer)+"/see", "--expect100-timeout", "30")...)
	if saw := readSeen(t, got.body); saw.Bytes != 5 || !slices.Equal(got.interim, []string{"HTTP/1.1 100 Continue"}) {
		t.Errorf("small: interim answers %q, and the function saw %+v", got.interim, saw)
	}
}

func TestClientsGetAnEarlyAnswer(t *testing.T) {
	body := file(t, 20<<20)
	got := curl(t, "--http1.1", "--header", "Expect:", "--data-binary", "@"+body, url(peer)+"/early?status=413")
	if got.code() != "413" || string(got.body) != "early\n" {
		t.Errorf("HTTP/1.1: %s %q", got.status, got.body)
	}
	// curl 7.88 takes the end of the stream for a failure, also when Go's own server answers.
	out := output(t, "nghttp", "--verbose", "--data="+body, url(peer)+"/early?status=413")
	if !strings.Contains(out, ":status: 413") || !strings.Contains(out, "early\n") {
		t.Errorf("HTTP/2: %s", out)
	}
}

func TestCurlGetsTrailersAndInterimAnswers(t *testing.T) {
	for _, version := range []string{"--http1.1", "--http2-prior-knowledge"} {
		got := curl(t, version, "--data", "12345", url(peer)+"/trailers")
		if string(got.body) != "5 bytes\n" || got.header.Get("X-Sum") != "5" || got.header.Get("X-Unannounced") != "yes" {
			t.Errorf("%s: %q, and trailers in %v", version, got.body, got.header)
		}
		got = curl(t, version, url(peer)+"/hints")
		if len(got.interim) != 2 || !strings.Contains(got.interim[0], " 103") || len(got.header.Values("Link")) != 2 || string(got.body) != "hinted\n" {
			t.Errorf("%s: %q, then %q with %v", version, got.interim, got.body, got.header)
		}
	}
	got := curl(t, "--http1.0", "--data", "12345", url(peer)+"/trailers")
	if string(got.body) != "5 bytes\n" || got.header.Get("X-Sum") != "" {
		t.Errorf("HTTP/1.0: %q with %v", got.body, got.header)
	}
	if got := curl(t, "--http1.0", url(peer)+"/hints"); len(got.interim) > 0 || string(got.body) != "hinted\n" {
		t.Errorf("HTTP/1.0: interim answers %q, then %q", got.interim, got.body)
	}
}

// curl's exit statuses for an answer that ends too soon.
var cutShort = map[string][]string{
	"--http1.0": {"18", "56"}, "--http1.1": {"18", "56"}, "--http2-prior-knowledge": {"92", "18"},
}

func TestCurlNoticesAnAnswerThatBreaksOff(t *testing.T) {
	needs(t, "sh")
	for version, codes := range cutShort {
		for _, query := range []string{"", "&length"} {
			out := output(t, "sh", "-c", `curl --silent --output "$0" "$@"; echo $?`, filepath.Join(t.TempDir(), "body"),
				version, url(peer)+"/bytes?n=1000000&break=500000"+query)
			if !slices.Contains(codes, strings.TrimSpace(out)) {
				t.Errorf("%s %s: curl ended with %q, want one of %q", version, query, out, codes)
			}
		}
	}
}

func TestCurlKeepsItsConnection(t *testing.T) {
	see := url(peer) + "/see"
	out := output(t, "curl", "--silent", "--http1.1", "--write-out", "\nconnects=%{num_connects}\n", "--data", "a", see, see, see)
	if got, want := linesWith(out, "connects="), []string{"connects=1", "connects=0", "connects=0"}; !slices.Equal(got, want) {
		t.Errorf("three calls made the connections %q", got)
	}
}

// linesWith are the lines that begin so.
func linesWith(text, prefix string) (found []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}
