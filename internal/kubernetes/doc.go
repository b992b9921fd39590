// Package kubernetes tests the manifests of packaging/kubernetes with the types of Kubernetes. It
// is a module of its own, because these are much code.
package kubernetes
