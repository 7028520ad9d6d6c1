//go:build apiserver

package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"
)

func TestMistakesInValuesAreNamed(t *testing.T) {
	const issuer = "gateway.auth.issuers.a.issuer=i,gateway.auth.issuers.a.audience=w,gateway.auth.issuers.a."
	for values, want := range map[string]string{
		"gatway.replicas=2":                                "additional properties 'gatway' not allowed",
		"gateway.replica=2":                                "at '/gateway': additional properties 'replica' not allowed",
		"gateway.service.typ=LoadBalancer":                 "at '/gateway/service': additional properties 'typ' not allowed",
		"gateway.service.type=Loadbalancer":                "at '/gateway/service/type': value must be one of 'ClusterIP', 'NodePort', 'LoadBalancer'",
		"gateway.replicas=0":                               "at '/gateway/replicas': minimum: got 0, want 1",
		"gateway.replicas=two":                             "at '/gateway/replicas': got string, want integer",
		"gateway.resources.request.cpu=1":                  "at '/gateway/resources': additional properties 'request' not allowed",
		"gateway.auth.default.mode=yes":                    "at '/gateway/auth/default/mode': value must be one of 'None', 'Required'",
		"gateway.auth.namespaces.a.rate=1":                 "at '/gateway/auth/namespaces/a': additional properties 'rate' not allowed",
		"gateway.auth.namespaces.A.mode=None":              "at '/gateway/auth/namespaces': additional properties 'A' not allowed",
		"gateway.auth.issuers.a.claim=c":                   "at '/gateway/auth/issuers/a': missing properties 'issuer', 'audience'",
		issuer + "claim=c":                                 "gateway.auth.issuers.a needs its public keys: write either jwksURL",
		issuer + "jwks=x":                                  "gateway.auth.issuers.a permits nothing: write claim",
		issuer + "algorithms={HS256}":                      "at '/gateway/auth/issuers/a/algorithms/0'",
		"tenancy.default.rate=1":                           "at '/tenancy/default': additional properties 'rate' not allowed",
		"tenancy.default.hosts={*}":                        "at '/tenancy/default/hosts/0'",
		"tenancy.namespaces.a.hosts={Shop.example.com}":    "at '/tenancy/namespaces/a/hosts/0'",
		"tenancy.default.hosts={localhost}":                "at '/tenancy/default/hosts/0'",
		"tenancy.default.maxInFlight=0":                    "at '/tenancy/default/maxInFlight': minimum: got 0, want 1",
		"tenancy.default.requestsPerSecond=0":              "at '/tenancy/default/requestsPerSecond': exclusiveMinimum",
		"tenancy.default.requestsPerSecond=many":           "at '/tenancy/default/requestsPerSecond'",
		"tenancy.default.bodyMemory=1000":                  "at '/tenancy/default/bodyMemory': got number, want string",
		"tenancy.default.burst=2":                          "tenancy.default has a burst of 2 without requestsPerSecond: write both, or neither",
		"tenancy.namespaces.a.burst=2":                     "tenancy.namespaces.a has a burst of 2 without requestsPerSecond",
		"gateway.extraArgs={listen=:1}":                    "at '/gateway/extraArgs/0': 'listen=:1' does not match pattern '^--'",
		"gateway.maxBodySize=1048576":                      "at '/gateway/maxBodySize': got number, want string",
		"gateway.maxBodySize=0Mi":                          "at '/gateway/maxBodySize': '0Mi' does not match pattern",
		"gateway.maxInFlight=0":                            "at '/gateway/maxInFlight': minimum: got 0, want 1",
		"gateway.drainDelay=5":                             "at '/gateway/drainDelay': got number, want string",
		"gateway.logCalls=all":                             "at '/gateway/logCalls': value must be one of 'Failed', 'All', 'None'",
		"namespaces={team-a}":                              "additional properties 'namespaces' not allowed",
		"scheduler.algorithm=best":                         "at '/scheduler/algorithm': value must be one of",
		"scheduler.terminationGracePeriodSeconds=5":        "at '/scheduler/terminationGracePeriodSeconds': minimum: got 5, want 15",
		"scheduler.pdb.maxUnavailable=0":                   "at '/scheduler/pdb/maxUnavailable': minimum: got 0, want 1",
		"scheduler.tolerations[0].effect=NoSchedules":      "at '/scheduler/tolerations/0/effect': value must be one of",
		"nodeAgent.callOrder=FIFO":                         "at '/nodeAgent/callOrder': value must be one of 'serpt', 'sept',",
		"nodeAgent.slice=50":                               "at '/nodeAgent/slice': got number, want string",
		"nodeAgent.slice=short":                            "at '/nodeAgent/slice': 'short' does not match pattern '^(auto|sfs|p95|off|",
		"nodeAgent.cores=-1":                               "at '/nodeAgent/cores': minimum: got -1, want 0",
		"nodeAgent.preempt=always":                         "at '/nodeAgent/preempt': got string, want boolean",
		"nodeAgent.coLocation=always":                      "at '/nodeAgent/coLocation': got string, want boolean",
		"nodeAgent.enabled=true,nodeAgent.coLocation=true": "nodeAgent.coLocation needs nodeAgent.latencyCriticalNamespaces",
		"nodeAgent.cgroupRoot=/":                           "at '/nodeAgent/cgroupRoot': '/' does not match pattern '^/sys/fs/cgroup",
		"nodeAgent.cgroupRoot=/sys/fs/cgroup/../..":        "at '/nodeAgent/cgroupRoot'",
		"nodeAgent.enable=true":                            "at '/nodeAgent': additional properties 'enable' not allowed",
		"nodeAgent.enabled=true,tls.mode=Existing,tls.existing.gatewaySecret=a,tls.existing.schedulerSecret=b,tls.existing.controllerSecret=c,tls.existing.etcdSecret=d": "tls.existing.nodeSecret is empty",
		"etcd.replicas=2":                        "at '/etcd/replicas': value must be one of 1, 3",
		"etcd.persistence.size=2Gb":              "at '/etcd/persistence/size': '2Gb' does not match pattern",
		"etcd.autoCompactionRetention=5 minutes": "at '/etcd/autoCompactionRetention'",
		"tls.mode=certManager":                   "at '/tls/mode': value must be one of 'BuiltIn', 'CertManager', 'Existing'",
		"log.level=warning":                      "at '/log/level': value must be one of 'debug', 'info', 'warn', 'error'",
		"image.pullPolicy=always":                "at '/image/pullPolicy': value must be one of",
		"image.digest=sha256:abc":                "at '/image/digest'",
		"watchNamespaces={Team A}":               "at '/watchNamespaces/0'",
		"watchNamespaces={a,a}":                  "at '/watchNamespaces'",
		"runtimes.ruby.fileExtension=rb":         "at '/runtimes/ruby': missing property 'image'",
		"runtimes.Ruby.image.repository=ruby":    "at '/runtimes': additional properties 'Ruby' not allowed",
		"runtimes.nodejs22x.name=python3.13":     "runtimes has the name python3.13 twice",
		"runtimes.nodejs22x.warmPools.a.sise=3":  "at '/runtimes/nodejs22x/warmPools/a'",
		"runtimes.nodejs22x.warmPools.a.size=3,runtimes.nodejs22x.warmPools.a.namespaceSelector=x":                                                                                                               "at '/runtimes/nodejs22x/warmPools/a/namespaceSelector'",
		"runtimes.nodejs22x.warmPools.a.size=3,runtimes.nodejs22x.warmPools.a.namespaceSelector.team=x":                                                                                                          "at '/runtimes/nodejs22x/warmPools/a/namespaceSelector': additional properties 'team' not allowed",
		"runtimes.nodejs22x.warmPools.a.size=3,runtimes.nodejs22x.warmPools.a.namespaceSelector.matchExpressions[0].key=team,runtimes.nodejs22x.warmPools.a.namespaceSelector.matchExpressions[0].operator=Like": "at '/runtimes/nodejs22x/warmPools/a/namespaceSelector/matchExpressions/0/operator': value must be one of",
		"runtimes[0].name=ruby":                         "at '/runtimes': got array, want object",
		"gateway.networkPolicy.from[0].podselector.a=b": "at '/gateway/networkPolicy/from/0': additional properties 'podselector' not allowed",
		"etcd.enabled=false":                            "etcd.enabled is false and etcd.endpoints is empty",
		"gateway.httpRoute.enabled=true":                "name a Gateway of the cluster",
		"etcd.endpoints={https://etcd:2379}":            "set etcd.enabled=false with it",
		"etcd.endpoints={etcd:2379},etcd.enabled=false": "at '/etcd/endpoints/0'",
		"etcd.auth.username=me":                         "etcd.auth.username needs etcd.auth.existingSecret",
		"tls.mode=Existing,tls.existing.gatewaySecret=a,tls.existing.schedulerSecret=b,tls.existing.controllerSecret=c": "tls.existing.etcdSecret is empty",
		"monitoring.serviceMonitor.enabled=true,monitoring.podMonitor.enabled=true":                                     "both enabled",
		"gateway.bodyMemory=2Gi": "gateway.bodyMemory must be below gateway.resources.limits.memory, 1Gi",
		"gateway.bodyMemory=1Mi": "gateway.bodyMemory is 1Mi: must be at least 2Mi",
		"gateway.autoscaling.enabled=true,gateway.autoscaling.maxReplicas=1": "minReplicas is larger than maxReplicas",
		"tls.domain=Acme": "at '/tls/domain'",
		"tls.mode=CertManager,tls.certManager.issuerRef.name=vault,tls.certManager.issuerRef.kind=ClusterIssuer": "set tls.certManager.clusterIssuerIsRestricted=true",
		"functions.userIDs.base=1000":                                                           "at '/functions/userIDs/base': minimum: got 1,000, want 65,536",
		"functions.userIDs.count=1000,functions.hostUsers=false":                                "set functions.userIDs.count=0",
		"functions.userIDs.count=2000000000":                                                    "functions.userIDs.base and count together are more than 2147483648",
		"functions.allowed.priorityClasses={system-node-critical}":                              "at '/functions/allowed/priorityClasses/0'",
		"functions.allowed.images={ghcr.io/acme/*}":                                             "at '/functions/allowed/images/0': 'ghcr.io/acme/*' does not match pattern",
		"functions.allowed.metadata={example.com/*}":                                            "at '/functions/allowed/metadata/0': 'example.com/*' does not match pattern",
		"functions.allowed.maxTimeout=15 min":                                                   "at '/functions/allowed/maxTimeout'",
		"functions.allowed.requiredRuntimeClass=gvisor,functions.allowed.runtimeClasses={kata}": "set one of the two",
		"functions.allowed.tolerations=false,admissionPolicy.enabled=false":                     "functions.allowed has no effect without admission policies: set admissionPolicy.enabled=true",
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			_, stderr, err := run(t, binary(t, "helm"), templateArgs(chartDir, []string{"--set", values})...)
			if err == nil {
				t.Fatal("these values are accepted")
			}
			if !strings.Contains(stderr, want) {
				t.Errorf("the mistake is told as\n%s\nwant it to contain %q", stderr, want)
			}
		})
	}
}

// schemaNode is a part of values.schema.json.
type schemaNode map[string]any

func schema(t *testing.T) schemaNode {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var root schemaNode
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// resolve follows a reference into $defs.
func (root schemaNode) resolve(node any) schemaNode {
	object, _ := node.(map[string]any)
	if ref, ok := object["$ref"].(string); ok {
		defs, _ := root["$defs"].(map[string]any)
		return root.resolve(defs[strings.TrimPrefix(ref, "#/$defs/")])
	}
	return object
}

// TestTheSchemaIsClosed wants every object that has properties to refuse others.
func TestTheSchemaIsClosed(t *testing.T) {
	root := schema(t)
	open := map[string]bool{"/properties/global": true} // other charts have keys there
	seen := 0
	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch node := node.(type) {
		case map[string]any:
			if _, ok := node["properties"].(map[string]any); ok && node["type"] == "object" {
				seen++
				if closed := node["additionalProperties"] == false; closed == open[at] {
					t.Errorf("%s: additionalProperties is %v", at, node["additionalProperties"])
				}
			}
			for key, child := range node {
				walk(at+"/"+key, child)
			}
		case []any:
			for _, child := range node {
				walk(at, child)
			}
		}
	}
	walk("", map[string]any(root))
	if seen < 30 {
		t.Errorf("saw %d objects only", seen)
	}
}

// TestTheSchemaAndTheValuesHaveTheSameKeys walks both.
func TestTheSchemaAndTheValuesHaveTheSameKeys(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := sigsyaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	root := schema(t)
	var walk func(at string, values map[string]any, node schemaNode)
	walk = func(at string, values map[string]any, node schemaNode) {
		properties, _ := node["properties"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			if _, ok := values[key]; !ok {
				t.Errorf("%s%s is in the schema and not in values.yaml", at, key)
			}
		}
		for key, value := range values {
			child, ok := properties[key]
			if patterns, named := node["patternProperties"].(map[string]any); named {
				for _, each := range patterns { // a map, whose keys are names
					child, ok = each, true
				}
			}
			if !ok {
				t.Errorf("%s%s is in values.yaml and not in the schema", at, key)
				continue
			}
			// What is given whole, as a piece of a pod, has no defaults in it.
			if object, ok := value.(map[string]any); ok && len(object) > 0 && key != "resources" && key != "podSecurityContext" {
				walk(at+key+".", object, root.resolve(child))
			}
		}
	}
	walk("", values, root)
}

// readValue finds what templates read of the values, also by the names that they give
// to a component's.
var readValue = regexp.MustCompile(`(?:\.Values|\$(gateway|scheduler|controller|etcd|monitoring|nodeAgent))((?:\.[A-Za-z]+)+)`)

// TestTemplatesReadValuesThatExist walks each path: helm takes one that is not there for
// an empty value.
func TestTemplatesReadValuesThatExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := sigsyaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(chartDir, "templates", "*"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		template, err := os.ReadFile(file)
		if err != nil {
			continue // A folder.
		}
		for _, read := range readValue.FindAllSubmatch(template, -1) {
			seen++
			path := strings.Trim(string(read[1])+string(read[2]), ".")
			var at any = values
			for key := range strings.SplitSeq(path, ".") {
				object, _ := at.(map[string]any)
				below, ok := object[key]
				if len(object) == 0 {
					break // A value, or a map with no keys of its own.
				}
				if !ok {
					t.Errorf("%s reads %s, which is not in values.yaml", filepath.Base(file), path)
					break
				}
				at = below
			}
		}
	}
	if seen < 100 {
		t.Errorf("saw %d values only", seen)
	}
}
