{{/* The Runtime manifests, as a YAML list. */}}
{{- define "windlass.runtimes" -}}
{{- $manifests := list -}}
{{- range $name, $runtime := .Values.runtimes -}}
{{- $spec := dict "image" (include "windlass.image" (list $ $runtime.image)) -}}
{{- range $field := list "command" "protocol" "fileExtension" "env" "warmPool" -}}
{{- with get $runtime $field -}}
{{- $_ := set $spec $field . -}}
{{- end -}}
{{- end -}}
{{- $metadata := dict "name" $name "labels" (dict "app.kubernetes.io/managed-by" "windlass") -}}
{{- $manifests = append $manifests (dict "apiVersion" "windlass.dev/v1alpha1" "kind" "Runtime" "metadata" $metadata "spec" $spec) -}}
{{- end -}}
{{- toYaml $manifests -}}
{{- end }}
