package gateway

import (
	"fmt"
	"net/url"
	"strings"
)

// pathOf is a path as the client wrote it, but for bytes that no path may have,
// which are percent-encoded. url.URL.EscapedPath is not that: if there is one such
// byte it decodes the whole path first, and what was an escaped slash then
// separates a namespace from a name.
func pathOf(u *url.URL) string {
	if u.RawPath == "" {
		return u.EscapedPath()
	}
	var path strings.Builder
	for i := range len(u.RawPath) {
		if b := u.RawPath[i]; inPath(b) {
			path.WriteByte(b)
		} else {
			fmt.Fprintf(&path, "%%%02X", b)
		}
	}
	return path.String()
}

// inPath says whether a byte may be in a path as it is (RFC 3986, 3.3); brackets
// are not, but everybody sends them.
func inPath(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("-._~!$&'()*+,;=:@/%[]", b) >= 0
}
