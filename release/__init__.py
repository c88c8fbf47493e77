"""What a release is made with: locked dependencies, their bill of materials, their licences and known faults."""
