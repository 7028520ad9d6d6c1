//go:build clients

package e2e

import (
	"fmt"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/lambdaclients"
)

// make test has run the other specs.
func init() { labels = "clients" }

var _ = Describe("A Lambda runtime", Label("clients"), func() {
	for _, client := range lambdaclients.All {
		It("may be the official client for "+client.Name+", unchanged", func() {
			command := client.Install(GinkgoTB(), "app.handler")
			w := start()
			fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "official"}}
			folder, err := filepath.Abs("../../pkg/podagent/adapter/lambda/testdata")
			Expect(err).NotTo(HaveOccurred())
			fn.Spec = v1alpha1.FunctionSpec{
				Template: v1alpha1.FunctionTemplate{Command: command, Protocol: v1alpha1.ProtocolLambdaRuntime, Handler: "app.handler", Code: &v1alpha1.Code{Path: folder}, StartupTimeout: seconds(30)},
			}
			w.apply(fn)
			for i := range 5 {
				a := w.do("POST", "/function/official", bodyOf(fmt.Sprintf(`{"n":%d,"text":"größer ☕"}`, i)))
				Expect(a.StatusCode).To(Equal(200), a.body)
				Expect(a.body).To(ContainSubstring(a.Header.Get("Windlass-Invocation-Id")))
				Expect(a.body).To(ContainSubstring("gr"))
			}
		})
	}
})
