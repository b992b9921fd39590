// Command source prints a hash of the code that the benchmarks in the process measure, for the head
// of their results. Its test fails if the code has changed since.
//
// usage: source, in the root of the repository
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/seed-181794aa/ratelimit/internal/codehash"
)

// measured are the directories of the code.
var measured = []string{"tb/cas", "lru"}

func main() {
	hash, err := codehash.Of(os.DirFS("."), measured...)
	if err != nil {
		log.Fatal("source: ", err)
	}
	fmt.Println(hash)
}
