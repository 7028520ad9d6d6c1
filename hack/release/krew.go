package main

import (
	"context"
	"fmt"

	"sigs.k8s.io/yaml"
)

// krew writes the manifest with which krew installs the plugin of kubectl.
func (r *release) krew(context.Context) error {
	digests := map[string]string{}
	for _, s := range r.subjects {
		digests[s.Name] = s.Digest["sha256"]
	}
	type object = map[string]any
	var platforms []object
	for _, p := range r.platforms {
		name := r.archiveName("kubectl-windlass", p)
		if digests[name] == "" {
			return fmt.Errorf("%s was not made", name)
		}
		platforms = append(platforms, object{
			"selector": object{"matchLabels": map[string]string{"os": p.os, "arch": p.arch}},
			"uri":      home + "/releases/download/" + r.version + "/" + name,
			"sha256":   digests[name],
			"bin":      "kubectl-windlass",
			"files":    []map[string]string{{"from": "kubectl-windlass", "to": "."}, {"from": "LICENSE", "to": "."}},
		})
	}
	content, err := yaml.Marshal(object{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   object{"name": "windlass"},
		"spec": object{
			"version":          r.version,
			"homepage":         home,
			"shortDescription": "Deploy, call and watch functions of Windlass",
			"description":      "The verbs of the windlass command for the cluster of a kubeconfig's context.\n",
			"platforms":        platforms,
		},
	})
	return r.write("windlass-krew_"+r.version+".yaml", content, err)
}
