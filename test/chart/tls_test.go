//go:build apiserver

package chart

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// names are those that a component's certificate must hold: one for who it is,
// and those by which it is dialled.
var names = map[string][]string{
	"gateway":    {"gateway.windlass.windlass.windlass", "windlass-gateway.windlass.svc"},
	"scheduler":  {"scheduler.windlass.windlass.windlass", "windlass-scheduler.windlass.svc"},
	"controller": {"controller.windlass.windlass.windlass"},
	"etcd":       {"etcd.windlass.windlass.windlass", "windlass-etcd-0.windlass-etcd.windlass.svc", "windlass-etcd-2.windlass-etcd.windlass.svc"},
}

func TestBuiltinCertificates(t *testing.T) {
	objects := render(t)
	ca := secret(t, objects, "windlass-ca")
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.Data["tls.crt"]) {
		t.Fatal("the CA is no certificate")
	}
	for component, names := range names {
		s := secret(t, objects, "windlass-"+component+"-tls")
		if string(s.Data["ca.crt"]) != string(ca.Data["tls.crt"]) {
			t.Errorf("%s has another CA", component)
		}
		pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
		if err != nil {
			t.Fatalf("%s: %v", component, err)
		}
		for _, name := range names {
			for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
				if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
					t.Errorf("%s as %s: %v", component, name, err)
				}
			}
		}
		if left := time.Until(pair.Leaf.NotAfter); left < 9*365*24*time.Hour {
			t.Errorf("the certificate of %s ends in %v", component, left)
		}
		for other := range namesOfOthers(component) {
			if pair.Leaf.VerifyHostname(other) == nil {
				t.Errorf("%s can pass for %s", component, other)
			}
		}
	}
}

func namesOfOthers(component string) map[string]bool {
	others := map[string]bool{}
	for other := range names {
		if other != component {
			others[names[other][0]] = true
		}
	}
	return others
}

func secret(t *testing.T, objects []unstructured.Unstructured, name string) corev1.Secret {
	t.Helper()
	return as[corev1.Secret](t, find(t, objects, "Secret", name))
}

func TestNobodyMountsTheKeyOfTheCA(t *testing.T) {
	eachPod(t, func(t *testing.T, pod corev1.PodTemplateSpec) {
		for _, volume := range pod.Spec.Volumes {
			if volume.Secret != nil && strings.HasSuffix(volume.Secret.SecretName, "-ca") {
				t.Errorf("mounts %s", volume.Secret.SecretName)
			}
		}
	})
}

func TestPodsMountTheSecretsThatAreMade(t *testing.T) {
	for scenario, want := range map[string]map[string]string{
		"defaults":              {"gateway": "windlass-gateway-tls", "scheduler": "windlass-scheduler-tls", "controller": "windlass-controller-tls", "etcd": "windlass-etcd-tls"},
		"cert-manager":          {"gateway": "windlass-gateway-tls", "scheduler": "windlass-scheduler-tls", "controller": "windlass-controller-tls", "etcd": "windlass-etcd-tls"},
		"an issuer":             {"gateway": "windlass-gateway-tls", "etcd": "windlass-etcd-tls"},
		"existing certificates": {"gateway": "g", "scheduler": "s", "controller": "c", "etcd": "e"},
	} {
		t.Run(scenario, func(t *testing.T) {
			objects := render(t, scenarios[scenario]...)
			made := map[string]bool{}
			for _, object := range objects {
				switch object.GetKind() {
				case "Secret":
					made[object.GetName()] = true
				case "Certificate":
					name, _, _ := unstructured.NestedString(object.Object, "spec", "secretName")
					made[name] = true
				}
			}
			for component, name := range want {
				kind := "Deployment"
				if component == "etcd" {
					kind = "StatefulSet"
				}
				pod, _ := podOf(t, find(t, objects, kind, "windlass-"+component))
				if got := pod.Spec.Volumes[0].Secret.SecretName; got != name {
					t.Errorf("%s mounts %s, want %s", component, got, name)
				}
				if made[name] != (scenario != "existing certificates") {
					t.Errorf("the Secret %s is made by the chart: %v", name, made[name])
				}
			}
		})
	}
}

func TestCertManagerMakesTheSameNames(t *testing.T) {
	for scenario, issuer := range map[string]string{"cert-manager": "windlass-ca", "an issuer": "vault"} {
		objects := render(t, scenarios[scenario]...)
		for component, names := range names {
			certificate := find(t, objects, "Certificate", "windlass-"+component)
			got, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
			if !slices.Contains(got, names[0]) || len(got) > 1 && !slices.Contains(got, "windlass-"+component+".windlass.svc") {
				t.Errorf("%s: %s has the names %v", scenario, component, got)
			}
			if ref, _, _ := unstructured.NestedString(certificate.Object, "spec", "issuerRef", "name"); ref != issuer {
				t.Errorf("%s: %s is issued by %s, want %s", scenario, component, ref, issuer)
			}
		}
	}
}

// TestS11CertificatesNameTheirWindlass compares the names in certificates with those that
// the processes and etcd are told to trust.
func TestS11CertificatesNameTheirWindlass(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a release":           {[]string{"--namespace", "functions"}, "windlass.functions.windlass"},
		"one of another name": {[]string{"--name-template", "blue", "--namespace", "functions", "--set", "fullnameOverride=windlass"}, "blue.functions.windlass"},
		"a domain of its own": {[]string{"--set", "tls.domain=berlin.acme"}, "berlin.acme"},
		"names that are long": {[]string{"--set", "tls.domain=" + strings.Repeat("a", 60)}, strings.Repeat("a", 60)},
	} {
		t.Run(name, func(t *testing.T) {
			objects := renderAs(t, append(test.args, "--set", "tls.mode=CertManager")...)
			for _, component := range []string{"gateway", "scheduler", "controller", "etcd"} {
				want := component + "." + test.want
				spec := find(t, objects, "Certificate", "windlass-"+component).Object["spec"].(map[string]any)
				if got := spec["dnsNames"].([]any)[0]; got != want {
					t.Errorf("the certificate of %s has the name %s, want %s", component, got, want)
				}
				if got, given := spec["commonName"]; given != (len(want) <= 64) || given && got != want {
					t.Errorf("the certificate of %s has the common name %v, of which X.509 takes 64 signs", component, got)
				}
			}
			for _, component := range []string{"gateway", "scheduler", "controller"} {
				pod, _ := podOf(t, find(t, objects, "Deployment", "windlass-"+component))
				if got := arguments(t, pod.Spec.Containers[0])["tls-domain"]; got != test.want {
					t.Errorf("%s trusts the domain %q, want %q", component, got, test.want)
				}
			}
			pod, _ := podOf(t, find(t, objects, "StatefulSet", "windlass-etcd"))
			args := arguments(t, pod.Spec.Containers[0])
			if got, want := args["client-cert-allowed-hostname"], fmt.Sprintf("gateway.%[1]s,scheduler.%[1]s,etcd.%[1]s", test.want); got != want {
				t.Errorf("etcd lets in %s, want %s", got, want)
			}
			if got, want := args["peer-cert-allowed-hostname"], "etcd."+test.want; got != want {
				t.Errorf("etcd's members trust %s, want %s", got, want)
			}
		})
	}
}

// renderAs renders the chart, with a name and a namespace of its own.
func renderAs(t *testing.T, args ...string) []unstructured.Unstructured {
	t.Helper()
	command := []string{"template", chartDir, "--kube-version", "1.34.0"}
	if !slices.Contains(args, "--name-template") {
		command = append(command, "--name-template", release)
	}
	text, stderr, err := run(t, binary(t, "helm"), append(command, args...)...)
	if err != nil {
		t.Fatal(stderr)
	}
	return parse(t, text)
}
