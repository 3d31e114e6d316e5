// Informer keeps a store of one resource as every controller in Go does, and says what it believes.
//
// It prints a line of JSON for each change of its store. For each line `dump` on its standard input it prints the whole store in one
// line. It ends when its standard input does.
//
// Usage: informer [-namespace NAMESPACE] RESOURCE.VERSION.GROUP, with KUBECONFIG set. KUBE_FEATURE_WatchListClient=false makes it list
// and then watch; by default it lists by watching.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// line is what is printed: a change of the store, or for a dump the whole of it.
type line struct {
	Event string `json:"event"`
	// The object of a change: namespace/name, its resourceVersion, and itself.
	Key    string                     `json:"key,omitempty"`
	RV     string                     `json:"rv,omitempty"`
	Object *unstructured.Unstructured `json:"object,omitempty"`
	// Of a dump: whether the first list is in the store, and all objects, by key.
	Synced bool                                  `json:"synced,omitempty"`
	Store  map[string]*unstructured.Unstructured `json:"store,omitempty"`
}

// printer writes whole lines, whoever has one.
type printer struct {
	mutex   sync.Mutex
	encoder *json.Encoder
}

func (p *printer) print(line line) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.encoder.Encode(line); err != nil {
		// Whoever started it has ended.
		os.Exit(0)
	}
}

func (p *printer) change(event string, changed any) {
	if last, ok := changed.(cache.DeletedFinalStateUnknown); ok {
		changed = last.Obj
	}
	object := changed.(*unstructured.Unstructured)
	p.print(line{Event: event, Key: key(object), RV: object.GetResourceVersion(), Object: object})
}

func key(object *unstructured.Unstructured) string {
	return cache.MetaObjectToName(object).String()
}

func main() {
	log.SetFlags(0)
	namespace := flag.String("namespace", "", "the namespace to look at; all if it is empty")
	flag.Parse()
	if err := run(flag.Arg(0), *namespace); err != nil {
		log.Fatal(err)
	}
}

func run(resource, namespace string) error {
	wanted, _ := schema.ParseResourceArg(resource)
	if wanted == nil {
		return fmt.Errorf("%q is not RESOURCE.VERSION.GROUP", resource)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	// No limit of the client's own, which would make it late.
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	out := &printer{encoder: json.NewEncoder(os.Stdout)}
	// Without a resync, so that each line is a change that came from the server.
	informer := dynamicinformer.NewFilteredDynamicInformer(client, *wanted, namespace, 0, cache.Indexers{}, nil).Informer()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { out.change("add", object) },
		UpdateFunc: func(_, object any) { out.change("update", object) },
		DeleteFunc: func(object any) { out.change("delete", object) },
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go informer.RunWithContext(ctx)

	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		if command := commands.Text(); command != "dump" {
			return fmt.Errorf("%q is no command; there is only dump", command)
		}
		out.print(dump(informer))
	}
	return commands.Err()
}

func dump(informer cache.SharedIndexInformer) line {
	synced := informer.HasSynced()
	store := map[string]*unstructured.Unstructured{}
	for _, stored := range informer.GetStore().List() {
		object := stored.(*unstructured.Unstructured)
		store[key(object)] = object
	}
	return line{Event: "dump", Synced: synced, Store: store}
}
