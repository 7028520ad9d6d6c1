package cli

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

// TestArgumentsOfAnyKind reads names, sizes, variables and headers as people may
// write them. It is no fuzz target because a fuzzer would build all that this
// package links, etcd and the cluster's client, with its instruments.
func TestArgumentsOfAnyKind(t *testing.T) {
	word := rapid.OneOf(
		rapid.String(), rapid.StringMatching(`[a-zA-Z0-9./:%?=\-]{0,12}`),
		rapid.SampledFrom([]string{"", "team/f", "../f", "//evil", "/x?y=z", "host:other", "Accept: text/plain", "\x00:", "/%zz", "CONNECT", "get it", "64Mi", "-1", "A=b"}),
	)
	rapid.Check(t, func(t *rapid.T) {
		name, namespace, header := word.Draw(t, "name"), word.Draw(t, "namespace"), word.Draw(t, "header")
		path, method := word.Draw(t, "path"), word.Draw(t, "method")
		if key, err := parseKey(name, namespace); err == nil && (len(validation.IsDNS1123Label(key.Name)) > 0 ||
			key.Namespace != "" && len(validation.IsDNS1123Label(key.Namespace)) > 0) {
			t.Errorf("%q is %+v", name, key)
		}
		if size, err := parseSize(name); err == nil && size < 1 {
			t.Errorf("%q is a size of %d", name, size)
		}
		if env, err := (&functionFlags{env: []string{header}}).environment(); err == nil && (len(env) != 1 || env[0].Name+"="+env[0].Value != header) {
			t.Errorf("%q is %+v", header, env)
		}
		r, err := newRequest("http://gateway.test/function/f", invokeFlags{path: path, method: method, headers: []string{header}}, []byte(name))
		if err != nil {
			return
		}
		if r.URL.Host != "gateway.test" || !strings.HasPrefix(r.URL.Path, "/function/f") {
			t.Errorf("%q calls %s", path, r.URL)
		}
		if r.Method != http.MethodPost && r.Method != method {
			t.Errorf("%q calls with %s", method, r.Method)
		}
	})
}
