{{/* The chart's name, as in labels. */}}
{{- define "windlass.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* The prefix of all names; short, so that "-controller" and a pod's suffix fit. */}}
{{- define "windlass.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The labels that select a component's pods. Takes (list $ component). */}}
{{- define "windlass.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "windlass.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The labels of an object. Takes (list $ component), and perhaps a map of labels that come
before all others; component may be empty. */}}
{{- define "windlass.labels" -}}
{{- $root := index . 0 -}}
{{- $chart := dict
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/name" (include "windlass.name" $root)
  "app.kubernetes.io/instance" $root.Release.Name
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "app.kubernetes.io/part-of" "windlass"
  "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- with index . 1 }}{{ $_ := set $chart "app.kubernetes.io/component" . }}{{ end -}}
{{- $own := dict -}}
{{- if gt (len .) 2 }}{{ $own = index . 2 }}{{ end -}}
{{- toYaml (merge (dict) $own $chart $root.Values.commonLabels) -}}
{{- end }}

{{/* The annotations of an object, or nothing. Takes (list $ own), own being a map that
comes before those of all objects. */}}
{{- define "windlass.annotations" -}}
{{- with merge (dict) (default dict (index . 1)) (index . 0).Values.commonAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{/* The name of a component's values. Takes the component. */}}
{{- define "windlass.valuesOf" -}}
{{- ternary "nodeAgent" . (eq . "node") -}}
{{- end }}

{{/* The name of a component's ServiceAccount. Takes (list $ component). */}}
{{- define "windlass.serviceAccountName" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $account := (index $root.Values (include "windlass.valuesOf" $component)).serviceAccount -}}
{{- if $account.create -}}
{{- default (printf "%s-%s" (include "windlass.fullname" $root) $component) $account.name -}}
{{- else -}}
{{- default "default" $account.name -}}
{{- end -}}
{{- end }}

{{/* A reference to an image. Takes (list $ image). */}}
{{- define "windlass.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $registry := default $image.registry $root.Values.global.imageRegistry -}}
{{- $name := $image.repository -}}
{{- if $registry -}}
{{- $name = printf "%s/%s" (trimSuffix "/" $registry) $image.repository -}}
{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $name $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default $root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end }}

{{/* The URLs of etcd, with commas. */}}
{{- define "windlass.etcdEndpoints" -}}
{{- if .Values.etcd.enabled -}}
{{- $urls := list -}}
{{- range $i := until (int .Values.etcd.replicas) -}}
{{- $urls = append $urls (printf "https://%s:2379" (include "windlass.etcdHost" (list $ $i))) -}}
{{- end -}}
{{- join "," $urls -}}
{{- else -}}
{{- join "," .Values.etcd.endpoints -}}
{{- end -}}
{{- end }}

{{/* The host name of a member of etcd. Takes (list $ ordinal). */}}
{{- define "windlass.etcdHost" -}}
{{- $root := index . 0 -}}
{{- $etcd := printf "%s-etcd" (include "windlass.fullname" $root) -}}
{{- printf "%s-%d.%s.%s.svc" $etcd (int (index . 1)) $etcd $root.Release.Namespace -}}
{{- end }}

{{/* The URL under which clients reach functions. */}}
{{- define "windlass.gatewayURL" -}}
{{- $gateway := .Values.gateway -}}
{{- if $gateway.externalURL -}}
{{- $gateway.externalURL -}}
{{- else if and $gateway.ingress.enabled $gateway.ingress.hosts -}}
{{- $path := trimSuffix "/" $gateway.ingress.path -}}
{{- printf "%s://%s%s" (ternary "https" "http" (not (empty $gateway.ingress.tls))) (first $gateway.ingress.hosts) $path -}}
{{- else -}}
{{- include "windlass.gatewayServiceURL" . -}}
{{- end -}}
{{- end }}

{{/* The URL of the gateway's Service. */}}
{{- define "windlass.gatewayServiceURL" -}}
{{- $port := int .Values.gateway.service.port -}}
{{- printf "http://%s-gateway.%s.svc%s" (include "windlass.fullname" .) .Release.Namespace (ternary "" (printf ":%d" $port) (eq $port 80)) -}}
{{- end }}

{{/* The Secret with a component's certificate. Takes (list $ component). */}}
{{- define "windlass.tlsSecret" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- if eq $root.Values.tls.mode "Existing" -}}
{{- index $root.Values.tls.existing (printf "%sSecret" $component) -}}
{{- else -}}
{{- printf "%s-%s-tls" (include "windlass.fullname" $root) $component -}}
{{- end -}}
{{- end }}

{{/* What the names of roles in all certificates end in. */}}
{{- define "windlass.tlsDomain" -}}
{{- default (printf "%s.%s.windlass" .Release.Name .Release.Namespace) .Values.tls.domain -}}
{{- end }}

{{/* The DNS names in a component's certificate, as a JSON list. Takes (list $ component). */}}
{{- define "windlass.tlsNames" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $service := printf "%s-%s" (include "windlass.fullname" $root) $component -}}
{{- $names := list (printf "%s.%s" $component (include "windlass.tlsDomain" $root)) -}}
{{- if ne $component "controller" -}}
{{- $names = append $names $service -}}
{{- $names = append $names (printf "%s.%s" $service $root.Release.Namespace) -}}
{{- $names = append $names (printf "%s.%s.svc" $service $root.Release.Namespace) -}}
{{- end -}}
{{- if eq $component "etcd" -}}
{{- $names = append $names (printf "*.%s.%s.svc" $service $root.Release.Namespace) -}}
{{- $names = append $names "localhost" -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{/* The components that have a certificate, as a JSON list. */}}
{{- define "windlass.tlsComponents" -}}
{{- $components := list "gateway" "scheduler" "controller" -}}
{{- if .Values.nodeAgent.enabled -}}
{{- $components = append $components "node" -}}
{{- end -}}
{{- if .Values.etcd.enabled -}}
{{- $components = append $components "etcd" -}}
{{- end -}}
{{- toJson $components -}}
{{- end }}
