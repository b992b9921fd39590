// Package kubernetes tests the manifests of packaging/kubernetes with the types of Kubernetes.
package kubernetes
