package cluster_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
)

const (
	// hostsDomain is the one below which each function has a host.
	hostsDomain = "fn.windlass.test"
	// grantedDomain is one below which functions may have hosts of their own.
	grantedDomain = "own.windlass.test"
)

var _ = Describe("A host", func() {
	It("is the oldest function's that asks for it and may have it", func(ctx SpecContext) {
		t := newTenant(ctx)
		own, denied := v1alpha1.Hostname(t.namespace+"."+grantedDomain), v1alpha1.Hostname(t.namespace+".denied.windlass.test")
		t.warm(httpd("older", version("older"), asking(own, denied)))
		t.withHosts("older")
		t.warm(httpd("younger", version("younger"), asking(own)))
		Eventually(t.hosts("older"), soon).Should(Equal([]v1alpha1.HostStatus{
			{Hostname: own, State: v1alpha1.HostAccepted}, {Hostname: denied, State: v1alpha1.HostNotPermitted},
		}), t.explain("older"))
		Eventually(t.hosts("younger"), soon).Should(Equal([]v1alpha1.HostStatus{{Hostname: own, State: v1alpha1.HostConflict}}), t.explain("younger"))
		Expect(t.condition("older", v1alpha1.ConditionHostsAccepted)).To(And(
			HaveField("Reason", v1alpha1.ReasonHostNotPermitted), HaveField("Message", ContainSubstring("tenancy.namespaces."+t.namespace+".hosts"))))
		Expect(t.condition("younger", v1alpha1.ConditionHostsAccepted)).To(And(
			HaveField("Reason", v1alpha1.ReasonHostConflict), HaveField("Message", ContainSubstring("function older"))))

		t.waitAnswer(string(own), http.StatusOK, "older\n")
		t.waitAnswer(string(denied), http.StatusNotFound, problems.HostNotPermitted)

		t.delete("older")
		t.waitAnswer(string(own), http.StatusOK, "younger\n")
		Eventually(t.hosts("younger"), soon).Should(Equal([]v1alpha1.HostStatus{{Hostname: own, State: v1alpha1.HostAccepted}}), t.explain("younger"))
	})

	It("of a tag leads to the tag's revision, and that of the function to those with weights", func(ctx SpecContext) {
		t := newTenant(ctx)
		t.warm(httpd("shop", version("one")))
		t.withHosts("shop")
		t.change("shop", func(s *v1alpha1.FunctionSpec) {
			version("two")(s)
			s.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", Weight: 100, RevisionName: "shop-00001"}, {Tag: "next"}}
		})
		status := func() v1alpha1.FunctionStatus { return t.status("shop") }
		Eventually(status, soon).Should(HaveField("Traffic", ConsistOf(
			v1alpha1.TrafficStatus{Tag: "live", RevisionName: "shop-00001", Weight: 100, URL: "http://live---shop--" + t.namespace + "." + hostsDomain},
			v1alpha1.TrafficStatus{Tag: "next", RevisionName: "shop-00002", URL: "http://next---shop--" + t.namespace + "." + hostsDomain},
		)), t.explain("shop"))
		Expect(t.status("shop").URL).To(Equal("http://shop--" + t.namespace + "." + hostsDomain))
		t.waitAnswer("next---shop--"+t.namespace+"."+hostsDomain, http.StatusOK, "two\n")
		t.waitAnswer("live---shop--"+t.namespace+"."+hostsDomain, http.StatusOK, "one\n")
		t.waitAnswer("shop--"+t.namespace+"."+hostsDomain, http.StatusOK, "one\n")
		t.waitAnswer("other---shop--"+t.namespace+"."+hostsDomain, http.StatusNotFound, problems.UnknownTag)
		t.waitAnswer("shops--"+t.namespace+"."+hostsDomain, http.StatusNotFound, problems.FunctionNotFound)
	})
})

// version makes a function answer so at /version.
func version(v string) func(*v1alpha1.FunctionSpec) {
	return func(s *v1alpha1.FunctionSpec) { s.Template.Env = []v1alpha1.EnvVar{{Name: "VERSION", Value: v}} }
}

// asking makes a function ask for hosts.
func asking(hosts ...v1alpha1.Hostname) func(*v1alpha1.FunctionSpec) {
	return func(s *v1alpha1.FunctionSpec) { s.Expose.Hosts = hosts }
}

// withHosts skips a spec where somebody has installed the chart without hosts of functions.
func (t *tenant) withHosts(name string) {
	GinkgoHelper()
	Eventually(func() string { return t.status(name).URL }, soon).ShouldNot(BeEmpty(), t.explain(name))
	if url := t.status(name).URL; !strings.HasSuffix(url, "."+hostsDomain) {
		Skip("needs gateway.hosts.domain=" + hostsDomain + " and tenancy.default.hosts={*." + grantedDomain + "}: the URL of a function is " + url)
	}
}

// hosts are what a function has of the hosts that it asks for.
func (t *tenant) hosts(name string) func() []v1alpha1.HostStatus {
	return func() []v1alpha1.HostStatus { return t.status(name).Hosts }
}

// waitAnswer waits until gateways answer so on a host, at the path /version.
func (t *tenant) waitAnswer(host string, status int, body string) {
	GinkgoHelper()
	for range 3 { // whichever gateways these meet
		Eventually(func() (string, error) {
			a, err := send(t.ctx, http.MethodGet, host, "/version", nil)
			return a.String(), err
		}, soon, "100ms").Should(And(HavePrefix("%d,", status), ContainSubstring(body)), host)
	}
}
