package catalog

// packDictionary has what the JSON of functions and their revisions is made of, the commonest last.
// Text that a packed value has alike with it takes two or three bytes. What it lacks is packed as
// well, only longer; what is packed lives as long as its process, so the dictionary may change.
const packDictionary = `"envFrom":[{"prefix":"","secretRef":{"name":"optional":true}},"configMapRef":{"name":"` +
	`"mounts":[{"name":"data","mountPath":"/","subPath":"readOnly":true,"secret":{"secretName":"persistentVolumeClaim":{"claimName":"emptyDir":{"medium":"sizeLimit":"` +
	`"imagePullSecrets":[{"name":""serviceAccountName":""placement":{"nodeSelector":{"kubernetes.io/arch":"amd64","tolerations":[{"key":"operator":"Exists","effect":"NoSchedule"` +
	`"runtimeClassName":""priorityClassName":""labels":{"app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"annotations":{"` +
	`"expose":{"hosts":["visibility":"Cluster"}"windows":[{"schedule":"* * * * *","timeZone":"UTC","duration":"minInstances":1,"maxInstances":10,"policy":"Learned"` +
	`"rate":{"requests":"period":"1s","burst":"maxInFlight":"queueTimeout":"30s","delivery":"AtLeastOnce","onClientDisconnect":"Cancel"` +
	`"strategy":"Stepwise","steps":[{"weight":"interval":"traffic":[{"tag":"blue","revisionName":"latestRevision":true` +
	`"valueFrom":{"secretKeyRef":{"name":"key":"fieldRef":{"fieldPath":"metadata.name"` +
	`"runtimeRef":{"kind":"ClusterRuntime","name":"python3.13"},"nodejs22.x"},"handler":"main.handler","code":{"inline":"path":"/"},"image":"registry.example.com/` +
	`"protocol":"LambdaRuntime","concurrency":10,"class":"LatencyCritical","windlass.dev/proving":"true","local.windlass.dev/code":"` +
	`"k":{"{"Observed":true,"Generation":0,"Started":true,"Failure":null,"NoRoom":"","Unconfirmed":false,"Ready":0}},` +
	`"p":{"Create":null,"State":{"Latest":"","Ready":"","Traffic":[{"revisionName":"","weight":100}],"Rollout":{"revisionName":"","step":0,"since":"2026-01-01T00:00:00Z"}},` +
	`"Phase":3,"Missing":null,"Remove":null,"Again":0}}` +
	`"status":"Unknown","False","observedGeneration":1,"reason":"StartFailed","Unused","message":"no calls go to it` +
	`"r":[{"kind":"FunctionRevision","apiVersion":"windlass.dev/v1alpha1","metadata":{"name":"-00001","namespace":"default","uid":"","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z",` +
	`"labels":{"app.kubernetes.io/managed-by":"windlass","windlass.dev/function":"","windlass.dev/function-uid":""},` +
	`"ownerReferences":[{"apiVersion":"windlass.dev/v1alpha1","kind":"Function","name":"","uid":"","controller":true,"blockOwnerDeletion":true}]},` +
	`"spec":{"functionName":"","number":1,"template":{` +
	`}},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Started","message":"an instance of it has started"},` +
	`{"type":"Active","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Serving","message":"calls go to it"}],"instances":{"ready":0},` +
	`"selector":"windlass.dev/revision-uid=","fullTrafficTime":"2026-01-01T00:00:00Z"}}]}` +
	`{"f":{"kind":"Function","apiVersion":"windlass.dev/v1alpha1","metadata":{"name":"","namespace":"default","uid":"","resourceVersion":"","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z"},` +
	`"spec":{"template":{"command":["--"],"args":["],"protocol":"HTTP","port":8080,"concurrency":1,"timeout":"1m","startupTimeout":"1m",` +
	`"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"cpu":"1","memory":"256Mi"}},"scheduling":{"class":"Standard"},"env":[{"name":"","value":""},{"name":"` +
	`"}]},"calls":{"delivery":"AtMostOnce","onClientDisconnect":"Continue"},"scaling":{"scaleDown":{"policy":"Fixed","idleTimeout":"10m","lastInstanceIdleTimeout":"1h"}},` +
	`"rollout":{"verify":"OneInstance","progressDeadline":"2m","strategy":"Immediate"},"revisionHistoryLimit":10},` +
	`"status":{"latestCreatedRevisionName":"-00001","latestReadyRevisionName":"-00001","traffic":[{"revisionName":"-00001","weight":100}],` +
	`"rollout":{"revisionName":"-00001","step":0,"since":"2026-01-01T00:00:00Z"},"instances":{"ready":0,"desired":0}}},` +
	`"u":[{"u":{"kind":"Function","apiVersion":"windlass.dev/v1alpha1","metadata":{"name":"","namespace":"default","uid":"","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z",` +
	`"annotations":{"windlass.dev/function-uid":"","windlass.dev/revision":"00001"}},"spec":{"calls":{"delivery":"AtMostOnce","onClientDisconnect":"Continue"},` +
	`"scaling":{"scaleDown":{"policy":"Fixed","idleTimeout":"10m","lastInstanceIdleTimeout":"1h"}},"rollout":{"verify":"OneInstance","progressDeadline":"2m","strategy":"Immediate"},` +
	`"revisionHistoryLimit":10}},"t":true,"l":true}],"r":[{"w":100}]}`
