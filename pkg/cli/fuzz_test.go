package cli

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzArguments reads names, sizes, variables and headers as people may write them.
func FuzzArguments(f *testing.F) {
	f.Add("team/f", "", "Accept: text/plain", "/x?y=z", "GET")
	f.Add("f", "team", "host:other", "//evil", "get it")
	f.Add("64Mi", "", "A=b", "", "")
	f.Add("../f", "a/b", "\x00:", "/%zz", "CONNECT")
	f.Fuzz(func(t *testing.T, name, namespace, header, path, method string) {
		if key, err := parseKey(name, namespace); err == nil && (len(validation.IsDNS1123Label(key.Name)) > 0 ||
			key.Namespace != "" && len(validation.IsDNS1123Label(key.Namespace)) > 0) {
			t.Errorf("%q is %+v", name, key)
		}
		if size, err := parseSize(name); err == nil && size < 1 {
			t.Errorf("%q is a size of %d", name, size)
		}
		if env, err := parseEnv([]string{header}); err == nil && (len(env) != 1 || env[0].Name+"="+env[0].Value != header) {
			t.Errorf("%q is %+v", header, env)
		}
		flags := invokeFlags{path: path, method: method, headers: []string{header}}
		r, err := newRequest("http://gateway.test/function/f", flags, []byte(name))
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
