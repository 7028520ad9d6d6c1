{{/* The ClusterRuntime manifests, as a YAML list. */}}
{{- define "windlass.runtimes" -}}
{{- $manifests := list -}}
{{- range $name, $runtime := .Values.runtimes -}}
{{- $spec := dict "image" (include "windlass.image" (list $ $runtime.image)) -}}
{{- range $field := list "command" "protocol" "fileExtension" "env" -}}
{{- with get $runtime $field -}}
{{- $_ := set $spec $field . -}}
{{- end -}}
{{- end -}}
{{- with $runtime.warmPool -}}
{{- $_ := set $spec "warmPools" (list (merge (dict "name" "default") .)) -}}
{{- end -}}
{{- $metadata := dict "name" $name "labels" (dict "app.kubernetes.io/managed-by" "windlass") -}}
{{- $manifests = append $manifests (dict "apiVersion" "windlass.dev/v1alpha1" "kind" "ClusterRuntime" "metadata" $metadata "spec" $spec) -}}
{{- end -}}
{{- toYaml $manifests -}}
{{- end }}
